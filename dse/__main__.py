"""Run `python -m dse` as the `diptych` command."""

from dse.cli import main

if __name__ == "__main__":
    main()
