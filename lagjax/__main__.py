"""`python -m lagjax`."""

from lagjax.cli.entry import main

if __name__ == "__main__":
    main()
