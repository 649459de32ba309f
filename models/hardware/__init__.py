"""What a chip and a cluster are made of: area, power, catalogue of real parts."""
