"""A plan as lines of text."""

from collections.abc import Iterator

from transformer_jax.runtime.sizes import gigabytes
from transformer_jax.runtime.values import JsonObject
from transformer_jax.runtime.wording import counted, duration

# Table 2's training costs are device time: 8 P100 at 9.5 TFLOP/s, base for 12 hours and big for 3.5 days.
_P100S, _P100_RATE = 8, 9.5e12
_TABLE_2 = {"base": (3.3e18, 12.0), "big": (2.3e19, 84.0)}


def text(plan: JsonObject) -> str:
  """The output of `transformer-jax plan`, from the JSON values that it prints with --json."""
  return "\n".join([*_parameters(plan), *_memory(plan), *_operations(plan), *_time(plan), *_data(plan), *_fit(plan)])


def _parameters(plan: JsonObject) -> Iterator[str]:
  yield "parameters"
  for part, count in plan["parameters"].items():
    yield f"  {part:<36} {count:>14,}"


def _memory(plan: JsonObject) -> Iterator[str]:
  memory = plan["memory"]
  rows = f"{counted(memory['rows_at_a_time'], 'rows')} of {plan['row_length']} at a time"
  yield f"memory on {_each(plan['devices'])} ({plan['platform']}), {rows}"
  for part in ("parameters", "optimizer", "gradients", "activations", "working", "total"):
    yield f"  {part:<36} {gigabytes(memory[part]):>14}"


def _each(devices: int) -> str:
  return "1 device" if devices == 1 else f"each of {devices} devices"


def _operations(plan: JsonObject) -> Iterator[str]:
  flops, steps = plan["flops"], plan["steps"]
  yield f"floating-point operations, of a step and of {steps:,} steps"
  yield f"  {'matmuls, padding included':<36} {flops['step']:>14.3g} {flops['recipe']:>10.3g}"
  yield f"  {'6 N D, the usual estimate':<36} {flops['six_n_d']:>14.3g} {flops['six_n_d_recipe']:>10.3g}"
  if plan["table_2"]:
    cost, hours = _TABLE_2[plan["table_2"]]
    yield f"  Table 2 has {cost:.2g} for {plan['table_2']}: not operations done but device time,"
    yield f"  {hours:g} hours of {_P100S} P100 at 9.5 TFLOP/s, which is {_P100S * _P100_RATE * hours * 3600:.3g}"


def _time(plan: JsonObject) -> Iterator[str]:
  if plan["time"]:
    time = plan["time"]
    yield f"time at {time['rate']:.3g} operations/s on {_each(plan['devices'])}"
    yield f"  {'a step':<36} {time['step']:>12,.3f} s"
    yield f"  {'the whole run':<36} {duration(time['recipe']):>14}"


def _data(plan: JsonObject) -> Iterator[str]:
  data = plan["data"]
  if "not_measured" in data:
    yield f"data: not measured, {data['not_measured']}"
    return
  yield "data"
  for name, count in {**data["found"], "rows": data["rows"], **data["left_out"]}.items():
    yield f"  {name:<36} {count:>14,}"
  yield f"  {'padding':<36} {data['padding']:>14.1%}"
  if data["rows_per_epoch"] != data["rows"]:
    yield f"  {'rows of an epoch with random pieces':<36} {data['rows_per_epoch']:>14,}"
  yield f"  {'steps per epoch':<36} {data['steps_per_epoch']:>14,.1f}"
  yield f"  {'epochs of the whole run':<36} {data['epochs']:>14,.1f}"


def _fit(plan: JsonObject) -> Iterator[str]:
  if plan["fit"]:
    fit = plan["fit"]
    batch = f"{fit['flags']['train.batch_tokens']:,} tokens per side (the paper's batch has 25,000)"
    yield f"{batch} in {gigabytes(fit['budget'])} on each device, of which they take {gigabytes(fit['total'])}"
    yield "  " + " ".join(f"--config.{key}={value}" for key, value in fit["flags"].items())
