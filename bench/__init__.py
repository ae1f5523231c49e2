"""What is measured, against whom. `python -m bench` lists, `python -m bench NAME` runs, `… tables` writes README.md."""
