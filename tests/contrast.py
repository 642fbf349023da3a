"""Which texts of a page in a browser have too little contrast: WCAG 2.2, level AA, with half-transparent colours mixed."""

POOR = """() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const mixed = (top, under) => [0, 1, 2].map(i => top[i] * (top[3] ?? 1) + under[i] * (1 - (top[3] ?? 1)));
  const behind = one => one ? mixed(rgb(getComputedStyle(one).backgroundColor), behind(one.parentElement)) : [255, 255, 255];
  const light = color => color.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  return [...document.querySelectorAll("body *")].flatMap(one => {
    const says = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!says || !one.checkVisibility({visibilityProperty: true, opacityProperty: true})) return [];
    const style = getComputedStyle(one), ground = behind(one), size = parseFloat(style.fontSize);
    const [a, b] = [light(mixed(rgb(style.color), ground)), light(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const isLarge = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    return ratio < (isLarge ? 3 : 4.5) ? [[ratio.toFixed(2), one.outerHTML.slice(0, 120)]] : [];
  });
}"""
