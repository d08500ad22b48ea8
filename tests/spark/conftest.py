# SPDX-License-Identifier: Apache-2.0
"""A real Spark cluster on loopback: one master and two workers of one core each, ended with the tests.

Skipped, with a reason, where pyspark or Java is not installed. Only processes started here are ended here.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_STARTING = 300  # seconds until master and workers must have said that they run, on a machine that is busy


class Cluster:
    """Starts and ends the processes of a standalone cluster."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        self.environment = os.environ | {
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",  # asked for where Spark comes without its build folders, as from pip
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_WORKER_DIR": str(folder / "work"),
            "PYSPARK_PYTHON": sys.executable,
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        # All at once: workers knock until the master opens.
        self._start("master", "Master", "--port", str(self.port))
        for name in ("first", "second"):
            self.start_worker(name)

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start_worker(self, name: str) -> None:
        self._start(name, "Worker", "--cores", "1", "--memory", "1g", self.address)

    def _start(self, name: str, role: str, *arguments: str) -> None:
        command = [
            "java", "-Xmx256m", "-Dspark.master.rest.enabled=false", f"-Dspark.worker.timeout={_STARTING}",
            "-cp", f"{self.home}/jars/*",
            f"org.apache.spark.deploy.{role.lower()}.{role}", "--host", "127.0.0.1", "--webui-port", "0", *arguments,
        ]  # fmt: skip
        with (self.folder / f"{name}.log").open("wb") as output:
            # A session of its own: a worker starts executors, and they are ended together.
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait(self) -> None:
        """Return when every worker that was started is part of the cluster."""
        until = time.monotonic() + _STARTING
        for name, process in self.processes.items():
            expected = "Started daemon" if name == "master" else "Successfully registered with master"
            while expected not in (said := (self.folder / f"{name}.log").read_text(errors="replace")):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{name} did not start: {said[-2_000:]}")
                time.sleep(0.2)

    def kill(self, name: str) -> None:
        """End a process and what it started, without asking."""
        process = self.processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for name in [*self.processes]:
            self.kill(name)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        try:
            started.wait()
        except RuntimeError as error:  # Spark's own processes; nothing of ours has run yet
            pytest.skip(f"no cluster could be started here: {error}")
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def session(cluster: Cluster) -> Iterator[Any]:
    import warnings

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore")  # pyspark's own, of pandas' newer versions
        from pyspark.sql import SparkSession

        for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON", "SPARK_LOCAL_DIRS"):
            environment.setenv(name, cluster.environment[name])
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.network.timeout": f"{2 * _STARTING}s",  # who is slow on a busy machine is not dead
            "spark.task.maxFailures": "2",  # a worker may die, and what workers refuse is not asked four times
        }
        builder = SparkSession.builder.master(cluster.address).appName("sfumato tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        try:
            started = builder.getOrCreate()
        except Exception as error:  # Spark's own, too
            pytest.skip(f"no session could be started here: {error}")
        started.sparkContext.setLogLevel("OFF")
        try:
            yield started
        finally:
            started.stop()
