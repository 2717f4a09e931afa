// Before the first paint, so that nothing flashes: the remembered theme, or the system's.
(() => {
  let theme = null;
  try { theme = localStorage.getItem("lbc-theme"); } catch { /* storage may be forbidden */ }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
