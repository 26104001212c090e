"""What the shell starts: Ctrl-C is taken care of before anything heavy is imported."""


def main() -> None:
    """Runs the command line."""
    try:
        from lagjax.cli import interrupts

        interrupts.install()
    except KeyboardInterrupt:
        import os

        os.write(2, b"lagjax: interrupted; run the same command again\n")
        os._exit(130)
    from lagjax.cli.app import main as run

    run()
