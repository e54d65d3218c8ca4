// What the page shows as files of one's own.

export function save(name, data, type) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const PROPERTIES = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font-size', 'font-family',
                    'font-weight'];

/** The text of an SVG picture that looks the same by itself. */
export function svgText(svg) {
  const copy = svg.cloneNode(true);
  const from = [svg, ...svg.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    to[i].setAttribute('style', PROPERTIES.map((p) => `${p}:${style.getPropertyValue(p)}`).join(';'));
    to[i].removeAttribute('class');
    to[i].removeAttribute('tabindex');
  });
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', width);
  copy.setAttribute('height', height);
  const back = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  back.setAttribute('width', width);
  back.setAttribute('height', height);
  back.setAttribute('fill', getComputedStyle(document.body).backgroundColor);
  copy.insertBefore(back, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

export async function savePng(name, svg) {
  const SCALE = 2;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = svg.viewBox.baseVal.width * SCALE;
  canvas.height = svg.viewBox.baseVal.height * SCALE;
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, 'image/png'));
  save(name, blob, 'image/png');
}

const cell = (value) => (/[",\n\r]/.test(String(value)) || /^[=+@-]/.test(String(value)) && typeof value === 'string'
  ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** The rows of a curve document as CSV. */
export function csv(rows) {
  const out = ['bytes,count,algorithm,plan,seconds,chunks,alpha,beta,gamma,delta,epsilon,mu'];
  for (const row of rows) {
    for (const r of row.results) {
      out.push([row.bytes, row.count, r.asked, r.algorithm, r.seconds, r.chunks, r.terms.alpha, r.terms.beta, r.terms.gamma,
                r.terms.delta, r.terms.epsilon, r.terms.mu ?? 0].map(cell).join(','));
    }
  }
  return `${out.join('\n')}\n`;
}
