"""What is measured, against whom. `make bench` lists, `make bench NAME=…` runs one."""
