// A page with one run: it is shown as soon as it is read.
(async () => {
  const began = performance.now(), root = document.getElementById("run");
  try {
    const run = await spacetime.open(document.getElementById("data").textContent);
    spacetime.show(run, root);
    document.documentElement.dataset.ready = Math.round(performance.now() - began);
  } catch (e) {
    root.textContent = "This page cannot show its run: " + e.message;
    document.documentElement.dataset.ready = "failed";
    throw e;
  }
})();
