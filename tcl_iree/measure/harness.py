"""Wrap a payload so that it can be called: `@run(times, buffers...)` dispatches it `times` times.

The dispatch stays exactly as IREE formed it inside the model. Buffers are the caller's, so nothing is
allocated or copied while the kernel is timed.

A model's weights are read once an inference, and if there are many, each comes from memory; what flows between its
dispatches is rarely in the nearest cache. A dispatch that runs again and again would find all of it there. So a buffer
may hold many copies, together larger than the cache, and each dispatch takes the next one. Whose turn it is is the
caller's to say, `@run(times, first, buffers...)`: several kernels that are timed beside each other must not find what
the others have just read.
"""

from __future__ import annotations

from tcl_iree.measure.copies import copies, spacing
from tcl_iree.workload.model import Workload
from tcl_iree.workload.payload import ENTRY, pipeline_layout

_EXECUTABLE = "executable"
_VARIANT = "variant"


def harness_module(workload: Workload, device: str) -> str:
    """The module to compile from phase `executable-sources`.

    Args:
        device: the `#hal.device.target` attribute of the target, as `probe_device` gives it.
    """
    executable_target = device[device.index("[") + 1 : device.rindex("]")]
    layout = pipeline_layout([binding.access for binding in workload.bindings])
    several = copies(workload)
    count = range(len(workload.bindings))
    views = "".join(f", %view{i}: !hal.buffer_view" for i in count)
    buffers = "\n    ".join(
        f"%buffer{i} = hal.buffer_view.buffer<%view{i} : !hal.buffer_view> : !hal.buffer\n    "
        + (
            f"%length{i} = arith.constant {workload.bindings[i].size_bytes} : index"
            if i in several
            else f"%length{i} = hal.buffer.length<%buffer{i} : !hal.buffer> : index"
        )
        for i in count
    )
    bindings = ", ".join(
        f"(%buffer{i} : !hal.buffer)[{f'%offset{i}' if i in several else '%c0'}, %length{i}]" for i in count
    )
    first = ", %first: i32" if several else ""
    entry = f"@{_EXECUTABLE}::@{_VARIANT}::@{ENTRY}"
    return f"""module {{
  util.global private @device = {device} : !hal.device
  hal.executable private @{_EXECUTABLE} {{
    hal.executable.variant public @{_VARIANT} target({executable_target.removeprefix("#hal.executable.target")}) {{
      hal.executable.export public @{ENTRY} ordinal(0) layout({layout}) count(%dev: !hal.device) -> (index, index, index) {{
        %x, %y, %z = iree_tensor_ext.dispatch.workgroup_count_from_slice()
        hal.return %x, %y, %z : index, index, index
      }}
      builtin.{workload.payload.strip().removeprefix("builtin.")}
    }}
  }}
  util.func public @run(%times: i32{first}{views}) attributes {{iree.abi.stub}} {{
    %count = arith.index_cast %times : i32 to index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %device, %affinity = hal.device.resolve on(#hal.device.affinity<@device>) : !hal.device, i64
    {buffers}
    %commands = hal.command_buffer.create device(%device : !hal.device) mode("OneShot|AllowInlineExecution") categories(Dispatch) affinity(%affinity) : !hal.command_buffer
    %x, %y, %z = hal.executable.calculate_workgroups device(%device : !hal.device) target({entry}) : index, index, index
    %executable = hal.executable.lookup device(%device : !hal.device) executable(@{_EXECUTABLE}) : !hal.executable
    %function = hal.executable.lookup.function target(%executable : !hal.executable) function({entry}) : i64
    scf.for %i = %c0 to %count step %c1 {{{_next_copies(workload)}
      hal.command_buffer.dispatch<%commands : !hal.command_buffer> target(%executable : !hal.executable)[%function] workgroups([%x, %y, %z]) bindings([{bindings}]) flags("None")
      hal.command_buffer.execution_barrier<%commands : !hal.command_buffer> source("Dispatch|CommandRetire") target("CommandIssue|Dispatch") flags("None")
    }}
    hal.command_buffer.finalize<%commands : !hal.command_buffer>
    %none = util.null : !hal.fence
    %fence = hal.fence.create device(%device : !hal.device) flags("None") : !hal.fence
    hal.device.queue.execute<%device : !hal.device> affinity(%affinity) wait(%none) signal(%fence) commands(%commands) flags("None")
    %forever = arith.constant -1 : i32
    %status = hal.fence.await until([%fence]) timeout_millis(%forever) flags("None") : i32
    util.status.check_ok %status, "the dispatch did not finish"
    util.return
  }}
}}
"""  # noqa: E501 - IR reads best one op a line


def _next_copies(workload: Workload) -> str:
    """Lines of the loop that choose which copies this dispatch takes."""
    several = copies(workload)
    lines = [
        "%begin = arith.index_cast %first : i32 to index",
        "%turn = arith.addi %begin, %i : index",
    ]
    for index, count in several.items():
        lines.append(f"%copies{index} = arith.constant {count} : index")
        lines.append(f"%copy{index} = arith.remui %turn, %copies{index} : index")
        lines.append(f"%spacing{index} = arith.constant {spacing(workload.bindings[index])} : index")
        lines.append(f"%offset{index} = arith.muli %copy{index}, %spacing{index} : index")
    return "".join(f"\n      {line}" for line in lines) if several else ""
