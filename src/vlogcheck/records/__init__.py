"""Every record vlogcheck knows, by subject. Adding a wording is one `Template(...)`; adding a record is one class."""

from vlogcheck.records.capacity import DeviceBlocks, KVCacheCapacity, MaxConcurrency
from vlogcheck.records.errors import FreeMemoryTooLow, KVCacheTooSmall, NoKVCacheMemory, OutOfMemory
from vlogcheck.records.identity import EngineConfig, ServerArgs, ServerVersion
from vlogcheck.records.memory import KVCacheMemory, MemoryProfile, MemoryUse
from vlogcheck.records.progress import EngineInit, GraphCapture, Ready
from vlogcheck.records.runtime import EngineStats
from vlogcheck.records.weights import WeightsLoaded, WeightsRead

__all__ = [
    "DeviceBlocks",
    "EngineConfig",
    "EngineInit",
    "EngineStats",
    "FreeMemoryTooLow",
    "GraphCapture",
    "KVCacheCapacity",
    "KVCacheMemory",
    "KVCacheTooSmall",
    "MaxConcurrency",
    "MemoryProfile",
    "MemoryUse",
    "NoKVCacheMemory",
    "OutOfMemory",
    "Ready",
    "ServerArgs",
    "ServerVersion",
    "WeightsLoaded",
    "WeightsRead",
]
