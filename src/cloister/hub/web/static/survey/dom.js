// Building the page: every text is put in as text, never as HTML.

/** Return an element. Attributes that are false or null are left out; functions listen to events ("onclick"). */
export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};

/** Replace what an element holds. */
export const fill = (element, ...children) => {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
};
