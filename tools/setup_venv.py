"""Make .venv in the checkout and install the pinned set and this project into it.

Every line is one that Python 2.7 can read, so that a Python that cannot work ends in a sentence
instead of a syntax error.
"""

from __future__ import print_function

import json
import os
import shutil
import subprocess
import sys

SUPPORTED = ((3, 11), (3, 10))  # the preferred one first
VENV = ".venv"
PYTHON = os.path.join(VENV, "bin", "python")
INSTALLING = os.path.join(VENV, "installing")  # there while an install is under way
INSTALLED = os.path.join(VENV, "installed")  # the Makefile's stamp; holds the checkout's path
PIP_FAILED = "pip failed as shown above: mend the cause and run make again."


class SetupError(Exception):
    """One sentence for the user: what was found, what is needed, what to do."""


def refusal(version):
    """Return why a Python of this version cannot work, or None when it can."""
    if tuple(version[:2]) in SUPPORTED:
        return None
    return (
        "Found Python %d.%d.%d, but dgl and torch need Python 3.10 or 3.11: "
        "install one and run `make PYTHON=python3.11 test`." % tuple(version[:3])
    )


def require_supported_python(or_another):
    """Stop on an unsuitable Python or, with `or_another`, go on as a suitable one from PATH."""
    sentence = refusal(sys.version_info)
    if sentence is None:
        return
    for version in SUPPORTED if or_another else ():
        name = "python%d.%d" % version
        if starts(name, [version]):
            os.execvp(name, [name] + sys.argv)
    raise SetupError(sentence)


def starts(python, versions):
    """Tell whether the command starts a Python of one of these versions."""
    check = "import sys; sys.exit(sys.version_info[:2] not in %r)" % (versions,)
    try:
        return run([python, "-c", check])[0] == 0
    except OSError:
        return False


def run(command):
    """Run a command without a word and return its exit code and what it wrote."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    output = process.communicate()[0]
    return process.returncode, output


def check(result, sentence):
    """Stop with the sentence when a command failed, after the command's own last lines."""
    code, output = result
    if code:
        print("\n".join(output.splitlines()[-15:]), file=sys.stderr)
        raise SetupError(sentence)


def pip_install(*what):
    """Install the pinned versions of these into .venv, or stop."""
    check(try_pip_install(*what), PIP_FAILED)


def try_pip_install(*what):
    """Install as `pip_install` does, but return what `run` does."""
    return run([PYTHON, "-m", "pip", "install", "-c", "constraints.txt"] + list(what))


def say(line):
    """Print a progress line at once, also into a pipe."""
    print(line)
    sys.stdout.flush()


def make_venv():
    """Make .venv, unless a sound one is there; mark it as unfinished either way."""
    sound = starts(PYTHON, SUPPORTED) and not os.path.exists(INSTALLING)
    if not sound:
        require_venv_module()
        shutil.rmtree(VENV, ignore_errors=True)
        os.mkdir(VENV)
    with open(INSTALLING, "w") as stream:
        stream.write(os.getcwd())
    if os.path.exists(INSTALLED):
        os.remove(INSTALLED)
    if not sound:
        say("Making .venv with Python %d.%d.%d" % sys.version_info[:3])
        # The real path: an activated .venv was just deleted together with its own python.
        make = [os.path.realpath(sys.executable), "-m", "venv", VENV]
        check(run(make), "Python's venv module failed as shown above: try another Python.")


def require_venv_module():
    """Stop before anything is made on a Python without venv, as Debian ships it."""
    from importlib.util import find_spec  # Python 2.7 has no such module

    if not (find_spec("venv") and find_spec("ensurepip")):
        raise SetupError(
            "Found Python %d.%d without its venv module: install the module "
            "(on Debian and Ubuntu, the package python%d.%d-venv) and run make again."
            % (sys.version_info[:2] * 2)
        )


def install_torch():
    """Install the CPU build of torch, or else a plain build that brings no CUDA along."""
    with open("constraints.txt") as stream:
        torch = next(line.strip() for line in stream if line.startswith("torch=="))
    say("Installing %s" % torch)
    cpu_build = try_pip_install(torch + "+cpu")
    if "no matching distribution" not in cpu_build[1].lower():
        check(cpu_build, PIP_FAILED)
        return
    if os.environ.get("ALLOW_CUDA") != "1":
        refuse_cuda(torch)
    pip_install(torch)


def refuse_cuda(torch):
    """Stop when this build of torch would bring gigabytes of CUDA libraries."""
    report = os.path.join(VENV, "torch.json")
    # fast-deps: some mirrors give dependencies only inside the wheels, and those are the gigabytes.
    pip_install("--use-feature=fast-deps", "--dry-run", "--report", report, torch)
    with open(report) as stream:
        names = [item["metadata"]["name"] for item in json.load(stream)["install"]]
    if any(name.startswith(("nvidia", "cuda", "triton")) for name in names):
        raise SetupError(
            "Found only a build of %s that brings gigabytes of CUDA: offer pip the CPU build (set "
            "PIP_FIND_LINKS or PIP_EXTRA_INDEX_URL to PyTorch's CPU packages) or accept the "
            "download with ALLOW_CUDA=1." % torch
        )


def main():
    """Set up the checkout that this file is in."""
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    require_supported_python(or_another="--or-another-python" in sys.argv)
    make_venv()
    # A Python's bundled pip may be too old for --report; ours is the pinned one.
    pip_install("pip", "setuptools", "wheel")
    install_torch()
    say("Installing dgl-orient with everything it is tested with")
    pip_install("--no-build-isolation", "-e", ".[all,docs,dev]")
    os.rename(INSTALLING, INSTALLED)


if __name__ == "__main__":
    try:
        main()
    except (SetupError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
