"""All registered sentences; importing this package fills the registry."""

import importlib
import pkgutil

from inside_deepinfer.conclusions.registry import CONCLUSIONS, Conclusion, conclusion

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["CONCLUSIONS", "Conclusion", "conclusion"]
