# SPDX-License-Identifier: MIT
"""The API of AMD Quark's profiler on qprof: change the import, and nothing else.

    from qprof.quark import GlobalProfiler, ProfileStep, profile_scope   # was quark.common.profiler

    profiler = GlobalProfiler(output_path="profile.yaml")
    with profiler.scope(ProfileStep.MODEL_LOADING):
        model = load()

The profile is the one that qprof-bpf writes, where its option -o says: `output_path` is kept and
not used, and QUARK_PROFILING need not be set. Memory, disk and time, for which Quark has metrics of
its own, are in that profile already; `checkpoint_metrics` and `summary_metrics` begin empty and are
for yours. A checkpoint metric is collected at each checkpoint of this API and joins its row under
`metrics`; a summary metric is collected by `stop()`, at the latest when Python exits, and is a key
of the profile. Their values must be numbers; None leaves one out. A program that makes the profiler
while qprof-bpf does not listen gets one RuntimeWarning, as no file will be written.
"""

import atexit
import os
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, TypeVar

from . import _around, _gpu, _library, begin, enabled, end, mark, metric, scope, summary

__all__ = ["BaseMetric", "CheckpointMetric", "GlobalProfiler", "MetricContext", "ProfileStep",
           "SummaryMetric", "profile_scope"]

_F = TypeVar("_F", bound=Callable[..., Any])


class ProfileStep:
    """The names of Quark's steps."""

    START = "Start"
    END = "End"
    USER_DEFINED = "User-Defined"  # with user_msg, which is the name then
    MODEL_LOADED = "Model Loaded"

    FILE_TO_FILE_QUANTIZATION = "File-to-File Quantization"
    MODEL_LOADING = "Model Loading"
    DATASET_LOADING = "Dataset Loading"
    MODEL_QUANTIZATION = "Model Quantization"
    MODEL_EVALUATION = "Model Evaluation"
    CALIBRATION = "Calibration"
    CALIBRATION_WEIGHTS = "Calibration (Weights)"
    CALIBRATION_FORWARD = "Calibration (Forward)"
    FREEZE_MODEL = "Freeze Model"
    MODEL_PREPARATION = "Model Preparation"
    ADVANCED_ALGORITHMS = "Advanced Algorithms"

    EXPORT_HF_SAFETENSORS = "Export HF Safetensors"
    EXPORT_ONNX = "Export ONNX"
    EXPORT_GGUF = "Export GGUF"

    PRE_PROCESS = "Pre-process"
    QUANTIZATION_MATMUL_NBITS = "Quantization (MatMulNBits)"
    QUANTIZATION_STATIC = "Quantization (Static)"
    QUANTIZATION_DYNAMIC = "Quantization (Dynamic)"
    POST_PROCESS = "Post-process"
    FAST_FINETUNE = "Fast Finetune"
    MODEL_CACHING = "Model Caching"
    FLOAT_MODEL_VALIDATION = "Float Model Validation"


@dataclass
class MetricContext:
    """What a metric may need to know. Times are Unix seconds, sizes are bytes of this process.

    The GPU's are what the devices have in use, by everybody, as in Quark; of the devices that PyTorch
    holds something on. Before the program uses CUDA, and without PyTorch, they are 0 and False; Quark
    would begin to use CUDA. The baseline is of the first checkpoint that has them, the peak of the
    highest. `process` is a psutil.Process where psutil is installed, else None.
    """

    start_time: Optional[float] = None
    end_time: Optional[float] = None  # only of summary metrics
    base_memory: int = 0
    process: Any = None
    step_name: Optional[str] = None  # this and the next two only of checkpoint metrics
    current_time: Optional[float] = None
    current_memory: int = 0
    gpu_available: bool = False
    gpu_baseline_memory: int = 0
    gpu_current_memory: int = 0
    gpu_peak_memory: int = 0
    disk_io_available: bool = False
    baseline_disk_read_bytes: int = 0
    baseline_disk_write_bytes: int = 0
    current_disk_read_bytes: int = 0
    current_disk_write_bytes: int = 0
    cache_dir_peak_disk_mb: Optional[float] = None


class BaseMetric(ABC):
    """A value of yours. Extend CheckpointMetric or SummaryMetric, not this."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its key in the profile."""

    @abstractmethod
    def get_definition(self) -> str:
        """What it is and in which unit, for the comments that end the profile."""

    @abstractmethod
    def collect(self, context: MetricContext) -> Any:
        """The value, a number, or None to leave it out."""


class CheckpointMetric(BaseMetric):
    """Collected at each checkpoint."""


class SummaryMetric(BaseMetric):
    """Collected once, by stop()."""


def forward(step_name: str) -> None:
    """One of Quark's checkpoints as ours.

    "NAME Start" and "NAME End" begin and end a phase; any other is a mark. Quark's own "Start" and
    "End" are left out, for they are those of the run, which has rows of these names.
    """
    if step_name.endswith(" Start"):
        begin(step_name[:-len(" Start")])
    elif step_name.endswith(" End"):
        end(step_name[:-len(" End")])
    elif step_name not in (ProfileStep.START, ProfileStep.END):
        mark(step_name)


def _read_numbers(path: str) -> List[int]:
    """The numbers in a file of /proc, one a line; [] if it cannot be read."""
    try:
        with open(path) as file:
            return [int(line.split()[-1]) for line in file]
    except (OSError, ValueError, IndexError):
        return []


def _resident() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class _Scope(scope):
    """A phase of the profiler: with its metrics, and `as` gives the profiler, as in Quark."""

    __slots__ = ("_profiler",)

    def __init__(self, profiler: "GlobalProfiler", name: str) -> None:
        super().__init__(name)
        self._profiler = profiler

    def __enter__(self) -> "GlobalProfiler":  # type: ignore[override]
        with self._profiler._checkpoint_of(f"{self._name} Start"):
            super().__enter__()
        return self._profiler

    def __exit__(self, *error: Any) -> None:
        with self._profiler._checkpoint_of(f"{self._name} End"):
            super().__exit__(*error)


class _Collected:
    """Metrics of the checkpoint inside. The lock keeps them to its row, among our own threads."""

    def __init__(self, profiler: "GlobalProfiler", step_name: str) -> None:
        self._profiler = profiler
        self._step_name = step_name

    def __enter__(self) -> None:
        self._profiler._lock.acquire()
        try:
            self._profiler._collect_checkpoint(self._step_name)
        except BaseException:
            self._profiler._lock.release()
            raise

    def __exit__(self, *_: Any) -> None:
        self._profiler._lock.release()


class GlobalProfiler:
    """Quark's profiler: a singleton, GlobalProfiler() gives it.

    output_path: kept as an attribute, and not used (see above).
    """

    _instance: Optional["GlobalProfiler"] = None
    _initialized = False

    def __new__(cls, output_path: str = "quark_profile.yaml") -> "GlobalProfiler":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self, output_path: str = "quark_profile.yaml") -> None:
        if self._initialized:
            return
        self._initialized = True
        self.output_path = output_path
        self.checkpoint_metrics: List[CheckpointMetric] = []
        self.summary_metrics: List[SummaryMetric] = []
        self.start_time = time.time()
        self._defined: set = set()
        self._stopped = False
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._gpu_baseline: Optional[int] = None
        self._gpu_peak = 0
        self._base = self._context()
        atexit.register(self.stop)
        if not enabled():
            self._warn_unheard()

    def _warn_unheard(self) -> None:
        hint = ("start it with: sudo qprof-bpf -o FILE -- COMMAND" if _library.is_loaded else
                "its library libqprof.so.0 is missing, too: install the package libqprof0")
        warnings.warn(f"qprof: no qprof-bpf listens, so {self.output_path!r} will not be written; "
                      f"{hint}", RuntimeWarning, stacklevel=3)

    @property
    def enabled(self) -> bool:
        """Whether qprof-bpf listens."""
        return enabled()

    def scope(self, step_name: str, user_msg: Optional[str] = None) -> Any:
        """A phase, to be used with `with`: the rows "NAME Start" and "NAME End".

        NAME is user_msg, or else step_name: one of ProfileStep, or any text.
        """
        return _Scope(self, user_msg if user_msg is not None else step_name)

    def stop(self) -> None:
        """Collects the summary metrics. Called when Python exits; a second call does nothing."""
        if self._stopped:
            return
        self._stopped = True
        if not enabled() or os.getpid() != self._pid:  # a forked child that exits
            return
        with self._lock:
            context = self._context(end_time=time.time())
            for one in list(self.summary_metrics):
                self._collect(one, context, summary)

    def start_cache_dir_monitoring(self, path: str) -> None:
        """Does nothing: what is written is in the profile, wherever it goes."""

    start_tmp_dir_monitoring = start_cache_dir_monitoring

    @staticmethod
    def log_torch_memory(tag: str = "") -> None:
        """Prints the memory of each GPU to stderr, if PyTorch is in use and has any."""
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return
        for device in range(torch.cuda.device_count()):
            free, _ = torch.cuda.mem_get_info(device)
            print(f"{tag} GPU {device}: "
                  f"reserved={torch.cuda.memory_reserved(device) / 2 ** 30:.2f} GiB "
                  f"allocated={torch.cuda.memory_allocated(device) / 2 ** 30:.2f} GiB "
                  f"free={free / 2 ** 30:.2f} GiB".lstrip(), file=sys.stderr)

    def _checkpoint(self, step_name: str) -> None:
        """One row. Quark's documentation calls it, so it is here under that name."""
        with self._checkpoint_of(step_name):
            forward(step_name)

    def _checkpoint_of(self, step_name: str) -> _Collected:
        return _Collected(self, step_name)

    def _collect_checkpoint(self, step_name: str) -> None:
        if not self.checkpoint_metrics or not enabled():
            return
        context = self._context(step_name=step_name, current_time=time.time())
        for one in list(self.checkpoint_metrics):
            self._collect(one, context, metric)

    def _collect(self, one: BaseMetric, context: MetricContext, report: Callable) -> None:
        """A metric that fails is left out with a warning: the program is what matters."""
        try:
            name, value = one.name, one.collect(context)
            if value is None:
                return
            definition = None if name in self._defined else one.get_definition()
        except Exception as error:  # pylint: disable=broad-except
            warnings.warn(f"qprof: the metric {one!r} is left out: {error!r}", RuntimeWarning,
                          stacklevel=4)
            return
        self._defined.add(name)
        report(name, value, definition)

    def _context(self, **known: Any) -> MetricContext:
        base = getattr(self, "_base", None)
        # rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes
        io = _read_numbers("/proc/self/io")
        read, written = io[4:6] if len(io) > 5 else (0, 0)
        psutil = sys.modules.get("psutil")
        memory = _resident()
        gpu = _gpu.in_use()
        if gpu is not None:
            self._gpu_baseline = gpu if self._gpu_baseline is None else self._gpu_baseline
            self._gpu_peak = max(self._gpu_peak, gpu)
        return MetricContext(
            start_time=self.start_time,
            base_memory=base.base_memory if base else memory,
            process=psutil.Process() if psutil else None,
            current_memory=memory,
            gpu_available=gpu is not None,
            gpu_baseline_memory=self._gpu_baseline or 0,
            gpu_current_memory=gpu or 0,
            gpu_peak_memory=self._gpu_peak,
            disk_io_available=bool(io),
            baseline_disk_read_bytes=base.baseline_disk_read_bytes if base else read,
            baseline_disk_write_bytes=base.baseline_disk_write_bytes if base else written,
            current_disk_read_bytes=read,
            current_disk_write_bytes=written,
            **known)


def profile_scope(step: str, user_msg: Optional[str] = None) -> Callable[[_F], _F]:
    """Decorates a function: each call is a phase. The name is user_msg, or else step."""
    def decorator(function: _F) -> _F:
        return _around(function, lambda *_: GlobalProfiler().scope(step, user_msg=user_msg))
    return decorator
