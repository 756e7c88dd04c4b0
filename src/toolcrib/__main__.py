"""`python -m toolcrib`: the command, where its script is not on the PATH."""

from toolcrib.cli import main

if __name__ == "__main__":
    main()
