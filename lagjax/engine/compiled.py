"""Compiled programs kept on disk, by JAX's persistent cache: a second run of the same shapes compiles nothing."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = "JAX_COMPILATION_CACHE_DIR"  # JAX's own variables: where, and whether at all
ENABLED = "JAX_ENABLE_COMPILATION_CACHE"
EVERYTHING = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
MAX_BYTES = 2**30  # kept from one run to the next; the oldest programs go first
ROOM = 2**26  # bytes that a disk must have free


def keep_compiled(folder: str | Path | None = None, warn: Callable[[str], Any] = lambda line: None) -> Path | None:
    """Has JAX keep what it compiles, in this process and in those that it starts from now on.

    Call it before anything is computed. Results are the same to the bit: what is kept are the programs. JAX's variables go
    before: JAX_ENABLE_COMPILATION_CACHE=false switches it off, JAX_COMPILATION_CACHE_DIR says where.

    Args:
      folder: where; by default in the user's cache folder, with a place for each kind of processor.
      warn: called with one line where nothing can be kept, which is no failure.

    Returns:
      The folder, or None where nothing is kept.
    """
    import jax

    set_by_user: Any = jax.config
    if not set_by_user.jax_enable_compilation_cache:
        return None
    if set_by_user.jax_compilation_cache_dir is not None:
        return Path(set_by_user.jax_compilation_cache_dir)
    try:
        place = Path(folder or _users_folder() / "lagjax" / f"compiled-{_processor()}").absolute()
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
        if shutil.disk_usage(place).free < ROOM:
            raise OSError("the disk is full")
    except (OSError, RuntimeError) as error:
        warn(f"compiled programs are not kept: {getattr(error, 'strerror', None) or error}")
        return None
    _shrink(place)
    os.environ |= {FOLDER: str(place), EVERYTHING: "0"}
    jax.config.update("jax_compilation_cache_dir", str(place))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # A program that cannot be read or written is compiled: no word about it.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache")
    return place


def _users_folder() -> Path:
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if Path(named).is_absolute():
        return Path(named)
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def _processor() -> str:
    """Tells processors apart whose programs may not run on each other; a home may be shared by several."""
    said = f"{platform.machine()} {platform.processor()}"
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        said += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(said.encode()).hexdigest()[:8]


def _shrink(place: Path) -> None:
    """Takes the oldest programs away where there are too many."""
    with suppress(OSError):
        files = [(found.stat(), found.path) for found in os.scandir(place) if found.is_file()]
        excess = sum(stat.st_size for stat, _ in files) - MAX_BYTES
        for stat, path in sorted(files, key=lambda file: file[0].st_mtime):
            if excess <= 0:
                break
            os.unlink(path)
            excess -= stat.st_size
