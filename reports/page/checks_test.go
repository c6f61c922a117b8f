package page

// checks are functions that run in the page. problems lists what keeps a
// reader from reading it: wrong contrast, clipped text, missing names.
const checks = `
const parse = c => {
  const m = c.match(/rgba?\(([^)]+)\)/);
  if (!m) return null;
  const p = m[1].split(/[ ,\/]+/).map(Number);
  return {r: p[0], g: p[1], b: p[2], a: p.length > 3 ? p[3] : 1};
};
const over = (top, under) => ({
  r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1,
});
const light = c => {
  const f = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b);
};
const contrast = (a, b) => {
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};
const ground = el => {
  const layers = [];
  for (let e = el; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c && c.a > 0) { layers.push(c); if (c.a === 1) break; }
  }
  let out = {r: 255, g: 255, b: 255, a: 1};
  for (const c of layers.reverse()) out = over(c, out);
  return out;
};
const visible = el => {
  const s = getComputedStyle(el);
  return s.display !== 'none' && s.visibility !== 'hidden' && el.getClientRects().length > 0;
};
const below = text => { // what an SVG text stands on: the areas drawn before it
  let out = ground(text.closest('svg'));
  const s = getComputedStyle(text);
  if (s.paintOrder.startsWith('stroke') && parseFloat(s.strokeWidth) >= 3) return out;
  const t = text.getBBox(), x = t.x + t.width / 2, y = t.y + t.height / 2;
  for (const e of text.closest('svg').children) {
    if (e === text) break;
    if (e.tagName !== 'rect') continue;
    const box = e.getBBox();
    if (x < box.x || x > box.x + box.width || y < box.y || y > box.y + box.height) continue;
    const c = parse(getComputedStyle(e).fill);
    if (c) out = over(c, out);
  }
  return out;
};
const name = el => (el.getAttribute('aria-label') || el.textContent || '').trim();
const where = el => el.tagName.toLowerCase() + (el.id ? '#' + el.id : '') + ' "' + name(el).slice(0, 40) + '"';
const problems = () => {
  const out = new Set();
  const say = s => { if (out.size < 20) out.add(s); };
  for (const d of document.querySelectorAll('details')) d.open = true;

  if (!document.documentElement.lang) say('the page has no lang');
  if (!document.title) say('the page has no title');
  if (document.querySelectorAll('h1').length !== 1) say('there are ' + document.querySelectorAll('h1').length + ' h1');
  let level = 0;
  for (const h of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const l = Number(h.tagName[1]);
    if (l > level + 1) say('heading jumps from ' + level + ' to ' + where(h));
    if (!name(h)) say('empty heading ' + where(h));
    level = l;
  }
  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) say('id twice: ' + e.id);
    ids.add(e.id);
  }
  for (const a of document.querySelectorAll('a[href]')) {
    if (!name(a)) say('link without a name: ' + a.getAttribute('href').slice(0, 60));
    const to = a.getAttribute('href');
    if (to.startsWith('#') && !document.getElementById(to.slice(1))) say('link to nowhere: ' + to);
  }
  for (const l of ['header', 'main', 'footer']) if (!document.querySelector(l)) say('no landmark ' + l);
  for (const n of document.querySelectorAll('nav, aside, [role=region], [role=group]')) if (!n.getAttribute('aria-label')) say('landmark without a name: ' + where(n));
  const skip = document.querySelector('a');
  if (!skip || skip.className !== 'skip' || !document.querySelector(skip.getAttribute('href'))) say('the first link is no skip link');

  for (const s of document.querySelectorAll('svg')) {
    const r = s.getBoundingClientRect();
    if (r.width < 100 || r.height < 30) say('a drawing of ' + r.width + ' by ' + r.height);
    if (s.getAttribute('role') !== 'img' || !s.getAttribute('aria-label') || !s.querySelector('desc')?.textContent) say('a drawing without role, label or description');
    const box = s.viewBox.baseVal;
    for (const t of s.querySelectorAll('text')) {
      const b = t.getBBox();
      if (b.width > 0 && (b.x < -2 || b.y < -2 || b.x + b.width > box.width + 2 || b.y + b.height > box.height + 2)) say('text beyond its drawing ' + s.getAttribute('aria-label') + ': ' + t.textContent);
    }
  }
  for (const i of document.images) if (!i.alt) say('image without alt');
  for (const t of document.querySelectorAll('table')) {
    if (!t.caption || !t.caption.textContent.trim()) say('table without caption: ' + t.id);
    for (const th of t.querySelectorAll('th')) if (!th.scope) say('header without scope: ' + where(th));
    for (const r of t.tBodies[0].rows) if (r.cells[0].tagName !== 'TH') say('row without header in ' + t.id);
    if (!t.closest('.scroll')) say('table without scroll box: ' + t.id);
    for (const c of t.querySelectorAll('td, th')) if (c.scrollWidth > c.clientWidth + 1) say('clipped field in ' + t.id + ': ' + where(c));
  }
  for (const b of document.querySelectorAll('.scroll')) {
    if (b.scrollWidth > b.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(b).overflowX)) say('wider than its box and does not scroll: ' + where(b.firstElementChild));
    if (b.tabIndex !== 0) say('a scroll box that the keyboard cannot reach');
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = [...document.body.querySelectorAll('*')].filter(e => !e.parentElement.closest('.scroll, pre, .skip') && e.getBoundingClientRect().right > innerWidth + 1);
    say('the page is ' + document.documentElement.scrollWidth + ' px wide on ' + innerWidth + ': ' + wide.map(where).join(', ').slice(0, 200));
  }

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !visible(e) || ['TITLE', 'title', 'DESC', 'desc', 'STYLE'].includes(e.tagName)) continue;
    const s = getComputedStyle(e), drawn = e.ownerSVGElement;
    const ink = parse(drawn ? s.fill : s.color), under = drawn ? below(e) : ground(e);
    if (!ink) continue;
    const size = parseFloat(s.fontSize), large = size >= 24 || size >= 18.66 && Number(s.fontWeight) >= 700;
    const c = contrast(over(ink, under), under);
    if (c < (large ? 3 : 4.5)) say('contrast ' + c.toFixed(2) + ': ' + where(e) + ' ' + s.color + ' class ' + (e.getAttribute('class') || ''));
  }
  return [...out];
};
`
