"use strict";
// Shows the values of the step at the pointer, or at the arrow keys, below each chart.
const { curves } = JSON.parse(document.getElementById("data").textContent);

function place(axis, value) {
  const scale = axis.logarithmic ? Math.log : Number;
  const share = (scale(value) - scale(axis.low)) / (scale(axis.high) - scale(axis.low));
  return axis.start + share * (axis.end - axis.start);
}

// The index of the step that is nearest to a wanted one; steps increase.
function nearest(steps, wanted) {
  let low = 0;
  let high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] > wanted) high = middle;
    else low = middle;
  }
  return wanted - steps[low] <= steps[high] - wanted ? low : high;
}

function written(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 5 });
}

function follow(figure) {
  const { x, y, lines } = curves[figure.dataset.name];
  const plane = figure.querySelector(".plane");
  const guide = plane.querySelector(".guide");
  const dots = plane.querySelectorAll(".dot");
  const values = figure.querySelectorAll(".legend b");
  const every = [...new Set(lines.flatMap((line) => line.steps))].sort((a, b) => a - b);
  let current = every.length - 1;

  function show(index) {
    current = Math.max(0, Math.min(every.length - 1, index));
    const step = every[current];
    figure.querySelector("output").textContent = `step ${step.toLocaleString("en")}`;
    guide.setAttribute("transform", `translate(${place(x, step)} 0)`);
    guide.setAttribute("visibility", "visible");
    lines.forEach((line, number) => {
      const found = nearest(line.steps, step);
      const value = line.values[found];
      const other = line.steps[found] === step ? "" : ` at ${line.steps[found].toLocaleString("en")}`;
      values[number].textContent = written(value) + other;
      dots[number].setAttribute("cx", place(x, line.steps[found]));
      dots[number].setAttribute("cy", place(y, value));
      dots[number].setAttribute("visibility", "visible");
    });
  }

  plane.addEventListener("pointermove", (event) => {
    const box = plane.getBoundingClientRect();
    const across = ((event.clientX - box.left) / box.width) * plane.viewBox.baseVal.width;
    const wanted = x.low + ((across - x.start) / (x.end - x.start)) * (x.high - x.low);
    show(nearest(every, wanted));
  });
  plane.addEventListener("keydown", (event) => {
    const stride = event.shiftKey ? 10 : 1;
    const moves = { ArrowLeft: current - stride, ArrowRight: current + stride, Home: 0, End: every.length - 1 };
    if (!(event.key in moves)) return;
    show(moves[event.key]);
    event.preventDefault();
  });
}

document.querySelectorAll(".chart").forEach(follow);
