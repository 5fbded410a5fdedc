// Runs in the page. It measures what a reader sees and returns what html_test.go calls findings.
(() => {
  const parse = (color) => { const m = color.match(/[\d.]+/g).map(Number); return { r: m[0], g: m[1], b: m[2], a: m.length > 3 ? m[3] : 1 }; };
  const over = (top, below) => ({ r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1 });
  // WCAG 2.2, relative luminance and contrast ratio.
  const luminance = (c) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b); };
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const canvas = matchMedia('print').matches ? { r: 255, g: 255, b: 255, a: 1 } : parse(getComputedStyle(document.body).backgroundColor);
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), canvas);
  };
  const name = (e) => `${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} "${e.textContent.trim().slice(0, 40)}"`;
  const found = { Scroll: document.documentElement.scrollWidth, Width: document.documentElement.clientWidth, Contrast: [], Checked: 0, Wide: [], Unnamed: [], Headings: [], Targets: 0, Small: [] };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.Checked < 5000; node = walker.nextNode()) {
    const e = node.parentElement;
    const style = getComputedStyle(e);
    const box = e.getBoundingClientRect();
    if (!node.data.trim() || e.closest('style') || style.visibility === 'hidden' || box.width <= 1 || box.height <= 1) continue;
    found.Checked++;
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const got = ratio(over(parse(style.color), background(e)), background(e));
    const key = `${e.tagName}${e.className}${got}`;
    if (got < (large ? 3 : 4.5) && !seen.has(key)) { seen.add(key); found.Contrast.push(`${got.toFixed(2)} ${name(e)}`); }
    if (size < 11) found.Small.push(`${size} ${name(e)}`);
  }
  if (found.Scroll > found.Width) for (const e of document.querySelectorAll('body *')) if (e.getBoundingClientRect().right > found.Width + 1 && found.Wide.length < 5) found.Wide.push(name(e));
  for (const e of document.querySelectorAll('table')) if (!e.caption || !e.caption.textContent.trim()) found.Unnamed.push(name(e));
  for (const e of document.querySelectorAll('svg[role=img]')) if (!e.getAttribute('aria-label')) found.Unnamed.push('a picture');
  let level = 0;
  for (const e of document.querySelectorAll('h1,h2,h3,h4')) { const now = Number(e.tagName[1]); if (now > level + 1) found.Headings.push(name(e)); level = now; }
  for (const e of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(e.getAttribute('href').slice(1))) found.Targets++;
  return found;
})()
