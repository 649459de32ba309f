"""The hardware: a systolic matmul array, simulated from Python and exported as Verilog."""
