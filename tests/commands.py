"""The command line, called by tests."""

from typer.testing import CliRunner

from kernling.cli.commands import app


def call(*arguments, code=0, stdin=None):
    """Return the result of a command, which must end with this exit code."""
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(one) for one in arguments], input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result
