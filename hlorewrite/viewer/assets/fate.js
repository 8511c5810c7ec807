// Names, signs and explanations of what can become of a collective. Signs carry the meaning where colours do not.

import {h} from "./dom.js";

const SIGNS = {moved: "↗", fused: "⋈", replaced: "⇄", removed: "×", stays: "=", new: "+",
               applied: "✓", blocked: "⊘", unprofitable: "≈", missed: "–"};
export const MEANINGS = {
  moved: "the same collective, in fewer or other loops", fused: "fewer calls send the same",
  replaced: "other collectives do its work", removed: "no call of its own is left", stays: "as it was", new: "was not there before",
  applied: "a pass did this", blocked: "it would be wrong", unprofitable: "right, but it would not pay", missed: "the pattern is not all there",
};

export function fateBadge(fate) {
  return h("span", {class: `badge fate-text-${fate}`, title: MEANINGS[fate] ?? ""},
           h("span", {class: "badge-sign", "aria-hidden": "true"}, SIGNS[fate] ?? "·"), fate);
}
