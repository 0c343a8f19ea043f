# SPDX-License-Identifier: GPL-2.0-only
"""Completions as shells make them: bash by its function, zsh on a terminal."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

BUILD = Path(os.environ["QPROF_BUILD"])
QPROF = BUILD / "qprof-bpf"
BASH = BUILD / "share/bash-completion/completions/qprof-bpf"
ZSH = BUILD / "share/zsh/site-functions/_qprof-bpf"
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
DEADLINE = 30


def run(*args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, env=ENV, timeout=DEADLINE,
                          check=False, **kwargs)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


@pytest.fixture(name="folder")
def make_folder(tmp_path):
    for name in ("profile.yaml", "my profile.yaml", "other.txt"):
        (tmp_path / name).touch()
    (tmp_path / "profiles").mkdir()
    return tmp_path


# What readline does, but for its breaks: each space, = and : ends a part of the line.
HARNESS = r"""
source "$1"
_demo() { COMPREPLY=("$COMP_CWORD:$3:$2:${COMP_LINE:0:COMP_POINT}"); }
complete -F _demo demo
COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9 COMP_KEY=9
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_qprof_bpf qprof-bpf "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((!${#COMPREPLY[@]})) || printf '%s\n' "${COMPREPLY[@]}"
"""


def bash(line, folder="/", script=BASH):
    """What bash offers at the end of a line."""
    words = re.findall(r"[=:]+|[^ =:]+", line)
    if line.endswith(" "):
        words.append("")
    return run("bash", "--norc", "-c", HARNESS, "bash", script, line, *words,
               cwd=folder).splitlines()


def options_of(*command):
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", run(QPROF, *command, "--help"), re.M))


@pytest.mark.parametrize("command", ["", "-a", "list", "report", "diff", "doctor"])
def test_bash_offers_the_options_of_help(command):
    words = command.split()
    offered = bash(" ".join(["qprof-bpf", *words, "--"]))
    assert {word.rstrip("=") for word in offered} == options_of(*words)


@pytest.mark.parametrize("line, offered", [
    ("report -f p", ["perfetto", "pprof"]),
    ("report --format=h", ["html"]),
    ("report --format h", ["html"]),
    ("report --sort ", ["time", "peak", "delta", "duration", "read", "write", "cpu"]),
    ("report --table proc", ["processes", "process_timeline"]),
    ("report --wi", ["--width="]),
    ("report --top ", []),
    ("report prof", ["profile.yaml", "profiles"]),
    ("report -f text my", ["my profile.yaml"]),
    ("report -o prof", ["profile.yaml", "profiles"]),
    ("report --output=oth", ["other.txt"]),
    ("diff profile.yaml oth", ["other.txt"]),
    ("diff --all -f j", ["json"]),
    ("rep", ["report"]),
    ("-a --events-only=jo", ["jobs"]),
    ("-a --events-only jobs,ch", ["jobs,checkpoints"]),
    ("-a --metrics-labels=command,p", ["command,pid"]),
    ("-qa --no-l", ["--no-live"]),
    ("-a --no-p", ["--no-paths"]),
    ("-d 5 --all --li", ["--listen=", "--live"]),
    ("--no-", ["--no-curves", "--no-follow", "--no-paths"]),
    ("--no-l", []),
    ("--python-hooks=q", ["quark"]),
    ("-q -o prof", ["profile.yaml", "profiles"]),
    ("-qo oth", ["other.txt"]),
    ("--usdt a:b --cos", ["--cost"]),
    ("completion z", ["zsh"]),
    ("doctor ", []),
    ("list oth", ["other.txt"]),
])
def test_bash(line, offered, folder):
    assert sorted(bash(f"qprof-bpf {line}", folder)) == sorted(offered)


def test_bash_offers_processes():
    pid = str(os.getpid())
    assert pid in bash("qprof-bpf -p ")
    assert pid in bash(f"qprof-bpf list --pid={pid}")
    assert f"1,{pid}" in bash(f"qprof-bpf -p 1,{pid}")


@pytest.mark.parametrize("before", ["--", "-q --usdt a:b --", "-o x.yaml", "--output=x --no-follow --"])
def test_bash_hands_over_to_the_command(before, folder):
    """What is behind -- belongs to the command: as if nothing stood before it."""
    assert bash(f"qprof-bpf {before} demo -a --x=1 fi") == ["5:1:fi:demo -a --x=1 fi"]
    assert "bash" in bash(f"qprof-bpf {before} bas")
    assert bash(f"qprof-bpf {before} unknown-to-all oth", folder) == ["other.txt"]


def test_bash_without_file():
    """As docs/install.md has it for those who did not install the package."""
    script = f"source <({QPROF} completion bash) && complete -p qprof-bpf"
    assert run("bash", "--norc", "-c", script) == "complete -F _qprof_bpf qprof-bpf\n"


def test_unknown_shell():
    done = subprocess.run([QPROF, "completion", "fish"], capture_output=True, text=True, check=False)
    assert done.returncode == 125 and not done.stdout, done
    assert "bash" in done.stderr and done.stderr.count("\n") == 1, done


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_bash_script_is_clean():
    run("shellcheck", "-s", "bash", BASH)


# ---- zsh

class Zsh:
    """A shell on a terminal; ^X^L prints the line as it is."""

    SETUP = """
PS1='> ' PS2= RPS1=; unsetopt zle_bracketed_paste beep; unset zle_bracketed_paste
fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u
_demo() {{ compadd -- "number-$CURRENT-of-$words[1]" }}; compdef _demo demo
show() {{ print -r -- "<<$BUFFER>>"; BUFFER=; zle redisplay }}; zle -N show; bindkey '^X^L' show
demo() {{ : }}; print rea''dy
"""

    def __init__(self, folder):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], ENV)
        self.seen = ""
        self.send(self.SETUP.format(folder=ZSH.parent).strip().replace("\n", "; ") + "\n")
        self.until(r"ready\r")

    def send(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        end = time.monotonic() + DEADLINE
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"expected {pattern}: {self.seen[-2000:]}"
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]
        return found

    def completed(self, line):
        """The line after a tab, when the shell has become idle."""
        self.send(f"qprof-bpf {line}\t\x18\x0c")
        return self.until(r"<<qprof-bpf (.*)>>")[1].rstrip(" ,")  # the comma before another word goes with it

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture(name="zsh")
def make_zsh(folder):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed: tools/setup installs it")
    zsh = Zsh(folder)
    yield zsh
    zsh.close()


def test_zsh(zsh):
    for line, completed in {
            "rep": "report",
            "report -f pe": "report -f perfetto",
            "report --format=ht": "report --format=html",
            "report --sor": "report --sort=",
            "report --table process_": "report --table process_timeline",
            "report oth": "report other.txt",
            "diff profile.yaml oth": "diff profile.yaml other.txt",
            "diff --max-t": "diff --max-time-increase=",
            "--no-f": "--no-follow",
            "--python-hooks=qu": "--python-hooks=quark",
            "-o oth": "-o other.txt",
            "-a --no-l": "-a --no-live",
            "-a --events-only=jobs,ch": "-a --events-only=jobs,checkpoints",
            "-a --rules oth": "-a --rules other.txt",
            f"-p {os.getpid()}": f"-p {os.getpid()}",
            "completion ba": "completion bash",
            "-q -- demo a ": "-q -- demo a number-3-of-demo",
            "demo ": "demo number-2-of-demo",
            "--usdt a:b -- demo -a ": "--usdt a:b -- demo -a number-3-of-demo",
    }.items():
        assert zsh.completed(line) == completed, line


def test_zsh_script_is_clean():
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed: tools/setup installs it")
    run("zsh", "-f", "-n", ZSH)
    script = f"autoload -U compinit; compinit -D -u; source <({QPROF} completion zsh); print $_comps[qprof-bpf]"
    assert run("zsh", "-f", "-c", script) == "_qprof-bpf\n"
