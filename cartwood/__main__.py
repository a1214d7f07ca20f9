"""The command line: `cartwood COMMAND`, or `python -m cartwood COMMAND`."""

import os
import sys
import warnings
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from cartwood.terminal import UserError, named_version, say, writing

# Each is a module of `cartwood.commands` with HELP, EXAMPLES, `add_arguments` and `run`.
COMMANDS = ("importance", "fit", "predict", "compare", "show", "warm-up")
PAGES = ("importance", "compare")  # these write a page even without --output
# Exit codes of programs ended by Ctrl-C, or by a reader of their output (such as `head`) that quit.
INTERRUPTED, NOT_READ = 130, 141


def main(words: list[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    words : list of str, default=None
        The arguments after the program's name; by default those on the command line.

    Returns
    -------
    int
        The exit code: 0, or 2 for an error that the user can fix, which one line explains.
    """
    args = _parser().parse_args(words)
    try:
        if args.command in PAGES and args.output is None:
            args.output = Path(f"{args.command}-{args.data.stem}.html")
        read = _files(args, "data", "model")
        for path in _files(args, "save", "output"):
            _require_place(path, read)
            _try_place(path, is_replaced="save" in args)
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for buffered output
        return NOT_READ
    except (UserError, OSError) as error:  # OSError: an unreadable file or a full disk, for example
        say(f"cartwood {args.command}: {error}")
        return 2
    return 0


def _say_warning(message, *_):
    """Print a warning of the library as one line, without its place in our code."""
    say(f"! {message}")


def _files(args: Namespace, *names: str) -> list[Path]:
    """The given ones among these arguments."""
    return [path for name in names if (path := getattr(args, name, None)) is not None]


def _require_place(path: Path, read: list[Path]) -> None:
    """Refuse, before any work is done, an output that cannot be written or is an input too."""
    if path.resolve() in [each.resolve() for each in read]:
        raise UserError(f"{path} is an input file and would be overwritten; name another.")
    if path.is_dir():
        raise UserError(f"cannot write {path}: it is a folder.")
    if not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}.")


def _try_place(path: Path, is_replaced: bool) -> None:
    """Refuse a file that the system does not let us write, without changing anything."""
    with writing(path):
        if is_replaced or not path.exists():
            TemporaryFile(dir=path.resolve().parent).close()
        elif path.is_file():
            path.open("ab").close()


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="cartwood",
        description="For tables in CSV and Parquet files: find out which columns matter and how "
        "well a forest predicts from them, and predict new rows.",
        epilog="cartwood COMMAND --help shows examples.",
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name in COMMANDS:
        module = import_module(f"cartwood.commands.{name.replace('-', '_')}")
        command = commands.add_parser(
            name, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.",
            epilog="examples:\n" + "\n".join(f"  {line}" for line in module.EXAMPLES),
            formatter_class=RawDescriptionHelpFormatter,
        )  # fmt: skip
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


class _Version(Action):
    """Print the version, and which compiled kernels came with it."""

    def __init__(self, option_strings, dest):
        words = "print the version, and which compiled kernels came with it"
        super().__init__(option_strings, dest, nargs=0, help=words)

    def __call__(self, parser, *_):
        from cart.jit.wheel_kernels import in_words

        print(f"{named_version()}; {in_words()}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
