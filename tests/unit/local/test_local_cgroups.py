"""Which cgroup file systems a machine has, from the kernel's own list."""

from __future__ import annotations

from pathlib import Path

from local.cgroups import Hierarchy, hierarchies

VERSION_1 = """\
25 21 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/systemd rw,relatime - cgroup systemd rw,xattr,name=systemd
28 25 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 none rw
"""
VERSION_2 = """\
30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
"""


def test_every_hierarchy_of_version_1_is_found_with_what_mounts_it_again() -> None:
    """A namespace shows its own root only in a mount that was made inside of it."""
    root = Path("/sys/fs/cgroup")

    assert tuple(hierarchies(VERSION_1)) == (
        Hierarchy(root / "cpu,cpuacct", "cgroup", "cpu,cpuacct"),
        Hierarchy(root / "systemd", "cgroup", "xattr,name=systemd"),
        Hierarchy(root / "unified", "cgroup2", ""),
    )


def test_version_2_is_one_hierarchy() -> None:
    """Debian 12 as installed has nothing else."""
    assert tuple(hierarchies(VERSION_2)) == (
        Hierarchy(Path("/sys/fs/cgroup"), "cgroup2", "nsdelegate"),
    )
