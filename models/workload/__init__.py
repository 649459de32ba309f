"""What a language model asks of a chip: operator tables of training, prefill and decode."""
