"""The driver for Azure Service Bus: docs/service-bus.md tells how it looks from outside, decision 13 why."""
