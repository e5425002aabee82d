"""A Slurm cluster of one node on this machine: four partitions, two pretended GPUs of four shards.

    python3 tests/slurm/cluster.py install        Debian's packages, as root
    python3 tests/slurm/cluster.py start FOLDER   keys, configuration, state and logs go there
    python3 tests/slurm/cluster.py stop FOLDER

Outside FOLDER only two links in /etc/slurm are made, and taken away again. It needs root, but
neither systemd nor cgroups, and listens on 127.0.0.1 alone. Nothing but the standard library.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
DEFAULT_PLACE = Path("/etc/slurm")
CONFIGURATIONS = ("slurm.conf", "gres.conf")
PARTITIONS = ("cpu", "gpu", "spot", "urgent")
CPUS, MEMORY_MB, GPUS, SHARDS = 4, 64000, 2, 8  # what the node claims, whatever the machine has
PATIENCE = 300  # seconds for what takes one or a few on an idle machine

# SlurmdParameters: claims count more than what is found. linuxproc, task/none: no cgroups.
# JobAcctGather: a step is killed within seconds of taking more memory than it asked for.
# MinJobAge: how long squeue shows finished jobs. cred_expire: a job of a lost node is started
# again after that many seconds; sites have 120. A job in the partition urgent preempts the others'
# jobs, whose partition says what becomes of them: they are started again, or (spot) cancelled.
CONFIGURATION = """\
ClusterName=memloc
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=15
CredType=cred/munge
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,sched_min_interval=0,bf_interval=2,batch_sched_delay=0
GresTypes=gpu,shard
ReturnToService=2
MinJobAge=7200
KillWait=2
InactiveLimit=0
SlurmctldTimeout=30
SlurmdTimeout=30
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} \
Gres=gpu:{gpus},shard:{shards} State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=DEFAULT Nodes=node MaxTime=INFINITE DefMemPerCPU=500 State=UP
PartitionName=cpu Default=YES PriorityTier=1
PartitionName=gpu PriorityTier=1
PartitionName=spot PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent PriorityTier=10 PreemptMode=OFF
"""
# Slurm counts a plain file as a GPU too, but tells jobs which is theirs only for a device.
GPU_CONFIGURATION = """\
AutoDetect=off
NodeName=node Name=gpu File={folder}/nvidia[0-{last}]
NodeName=node Name=shard Count={shards}
"""


class Unavailable(Exception):
    """Why there can be no cluster here."""


def install() -> None:
    """Install what is missing with apt; Unavailable where that can't be."""
    if not _missing():
        return
    if os.geteuid() != 0:
        raise Unavailable(f"{', '.join(_missing())} missing, and only root may install them")
    if not shutil.which("apt-get"):
        raise Unavailable(f"{', '.join(_missing())} missing, and this isn't Debian: no apt-get")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patience = ["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        try:
            done = subprocess.run(
                ["apt-get", "--quiet", *patience, *command],
                env=quiet,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=300,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"apt-get {command[0]} took more than 5 minutes") from None
        # a stale list may do: the installation decides
        if done.returncode and command[0] == "install":
            raise Unavailable(f"apt-get install failed: {done.stdout.strip()[-300:]}")
    if _missing():
        raise Unavailable(f"{', '.join(_missing())} still missing after installation")


def _missing() -> list[str]:
    return [name for name in PROGRAMS if not shutil.which(name)]


def require() -> None:
    """Raise Unavailable, with the reason, where a cluster can't be started."""
    if os.geteuid() != 0:
        raise Unavailable("Slurm's daemons need root")
    if _missing():
        raise Unavailable(f"not installed: {', '.join(_missing())} (Debian: {' '.join(PACKAGES)})")
    for name in CONFIGURATIONS:
        place = DEFAULT_PLACE / name
        if place.exists() and not _is_left_behind(place):
            raise Unavailable(
                f"{place.resolve()} exists: this machine belongs to a cluster already"
            )
    try:
        socket.gethostbyname(_host())
    except OSError:
        raise Unavailable(f"host name {_host()} has no address: add it to /etc/hosts") from None


def _is_left_behind(place: Path) -> bool:
    """Whether a configuration is a link of ours whose cluster was killed before it could stop."""
    folder = place.resolve().parent
    known = folder / "slurm.conf"
    ours = known.exists() and known.read_text().startswith("ClusterName=memloc\n")
    return place.is_symlink() and ours and Cluster(folder)._pid("slurmctld") is None


class Cluster:
    """Daemons whose files all lie in one folder."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder).resolve()

    def start(self) -> None:
        """Start all daemons, and wait until the node takes jobs."""
        require()
        for link in DEFAULT_PLACE.glob("*.conf"):
            if link.name in CONFIGURATIONS and link.is_symlink():  # ours, as `require` knows
                Cluster(link.readlink().parent).stop()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        try:
            self._configure()
            self._start_munge()
            self._daemon("slurmctld", "-i")
            self.start_node()
        except BaseException:
            self.stop()
            raise

    def start_node(self) -> None:
        """Start slurmd, and wait until the node takes jobs."""
        self._daemon("slurmd")
        _wait(self._node_is_up, f"node is not up; see {self.folder}/*.log")

    def kill_node(self) -> None:
        """SIGKILL for slurmd: running jobs live on without it."""
        pid = self._pid("slurmd")
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            _wait(lambda: not _is_alive(pid, "slurmd"), "slurmd survives SIGKILL")

    def processes(self, number: str) -> list[int]:
        """A job's processes on this node, those first by which Slurm watches over its steps."""
        stewards, own = [], []
        told = {b"SLURM_CLUSTER_NAME=memloc", f"SLURM_JOB_ID={number}".encode()}
        for pid, words, environment, _ in _running():
            if words.startswith(f"slurmstepd: [{number}.".encode()):
                stewards.append(pid)
            elif told <= environment:
                own.append(pid)
        return stewards + own

    def stop(self) -> None:
        """Cancel all jobs, end the daemons, and take away the links."""
        if self._pid("slurmctld") is not None:
            for partition in PARTITIONS:
                self.run("scancel", f"--partition={partition}", check=False)
            give_up = time.monotonic() + 60
            while self.run("squeue", "--noheader", check=False) and time.monotonic() < give_up:
                time.sleep(0.3)
        for name in ("slurmd", "slurmctld", "munged"):
            self._end(name)
        for pid in self._strays():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name in CONFIGURATIONS:
            link = DEFAULT_PLACE / name
            if link.is_symlink() and link.readlink() == self.folder / name:
                link.unlink()

    def _strays(self) -> list[int]:
        """Processes of jobs that are still there: Slurm goes by process groups here, and a job
        whose slurmd was killed, or that hangs in its handler of SIGTERM, can escape it."""
        ours = b"SLURM_CLUSTER_NAME=memloc"
        near = self.folder.parent
        return [pid for pid, _, told, at in _running() if ours in told and at.is_relative_to(near)]

    def run(self, *command: str, check: bool = True) -> str:
        """Output of a command of Slurm; without a controller it would wait for minutes."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def jobs(self) -> list[dict[str, str]]:
        """All jobs that were ever submitted, as `scontrol show job` describes them."""
        lines = self.run("scontrol", "show", "job", "--oneliner").splitlines()
        pairs = [[word.partition("=") for word in line.split()] for line in lines]
        found = [{key: value for key, _, value in line} for line in pairs]
        return [job for job in found if "JobId" in job]

    # --- files and daemons ---------------------------------------------------------------

    def _configure(self) -> None:
        facts = {
            "host": _host(),
            "folder": self.folder,
            "controller_port": _free_port(),
            "node_port": _free_port(),
            "cpus": CPUS,
            "memory": MEMORY_MB,
            "gpus": GPUS,
            "shards": SHARDS,
            "last": GPUS - 1,
        }
        for name in ("state", "spool"):
            (self.folder / name).mkdir(exist_ok=True)
        for number in range(GPUS):
            device = self.folder / f"nvidia{number}"
            device.unlink(missing_ok=True)
            device.symlink_to("/dev/null")
        DEFAULT_PLACE.mkdir(exist_ok=True)
        for name, text in (("slurm.conf", CONFIGURATION), ("gres.conf", GPU_CONFIGURATION)):
            (self.folder / name).write_text(text.format(**facts))
            # Jobs look for it here: the plugin drops SLURM_CONF from their environment.
            (DEFAULT_PLACE / name).symlink_to(self.folder / name)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(256))
        options = {
            "key-file": key,
            "socket": self.folder / "munge.socket",
            "pid-file": self.folder / "munged.pid",
            "log-file": self.folder / "munged.log",
            "seed-file": self.folder / "munged.seed",
        }
        # --force: folders of tests are writable for others than root
        _launch(["munged", "--force", *(f"--{name}={value}" for name, value in options.items())])
        _wait(lambda: (self.folder / "munge.socket").exists(), "munged doesn't answer")

    def _daemon(self, name: str, *options: str) -> None:
        _launch([name, "-f", str(self.folder / "slurm.conf"), *options])

    def _node_is_up(self) -> bool:
        # A node that was lost comes back by itself (ReturnToService); `*`: it doesn't answer yet.
        try:
            state = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False)
        except subprocess.TimeoutExpired:
            return False
        words = set(state.split())
        return bool(words) and words <= {"idle", "mixed", "allocated"}

    def _pid(self, name: str) -> int | None:
        """Process of a daemon; None when it isn't running."""
        try:
            pid = int((self.folder / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return None
        return pid if _is_alive(pid, name) else None

    def _end(self, name: str) -> None:
        pid = self._pid(name)
        for number in (signal.SIGTERM, signal.SIGKILL):
            give_up = time.monotonic() + 30
            while pid is not None and _is_alive(pid, name) and time.monotonic() < give_up:
                os.kill(pid, number)
                time.sleep(0.2)


def _launch(command: list[str]) -> None:
    """Start a program that puts itself into the background."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise Unavailable(f"{command[0]} didn't start: {(done.stderr or done.stdout).strip()}")


def _running() -> Iterator[tuple[int, bytes, set[bytes], Path]]:
    """Of all processes: number, command line, environment, folder."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words, told = ((place / name).read_bytes() for name in ("cmdline", "environ"))
            at = Path(os.readlink(place / "cwd"))
        except OSError:  # it has ended, or is another user's
            continue
        yield int(place.name), words.replace(b"\0", b" "), set(told.split(b"\0")), at


def _is_alive(pid: int, name: str) -> bool:
    """Whether this process runs and is of that name: numbers are used again."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return f"({name})" in status and ") Z " not in status


def _wait(condition: Callable[[], bool], complaint: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            raise Unavailable(complaint)
        time.sleep(0.2)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main(arguments: list[str]) -> None:
    try:
        match arguments:
            case ["install"]:
                install()
            case ["start", folder]:
                Cluster(folder).start()
            case ["stop", folder]:
                Cluster(folder).stop()
            case _:
                sys.exit(__doc__)
    except Unavailable as reason:
        sys.exit(f"no Slurm cluster here: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
