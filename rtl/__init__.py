"""The hardware: a parameterized systolic matmul array, simulated from Python and exported as Verilog."""
