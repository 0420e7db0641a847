"""``python -m structgen``: the command line."""

from structgen.cli.main import app

if __name__ == "__main__":
    app()
