// SPDX-License-Identifier: MIT
// When what is dear was on, if not always.

const WINDOWS_SHOWN = 12; // in the sentence

function windowsWords({schedule, of: pattern, what, phases}) {
	const shown = phases.slice(0, WINDOWS_SHOWN).flatMap((w, i) =>
		[i ? ", " : ": ", named(w.phase), ` (${secs(w.start / 1e9)} to ${secs(w.end / 1e9)}${w.late ? `, begun ${secs(w.late / 1e9)} late` : ""})`]);

	return [`On in ${phases.length} of the phases `, named(pattern), ` (${schedule}), ${what}`, ...shown,
		...(phases.length > WINDOWS_SHOWN ? [`, and ${phases.length - WINDOWS_SHOWN} more`] : []), ". The rest is (outside of windows)."];
}

function addWindows() {
	const words = byId("windows");

	words.hidden = !profile.window;
	if (!words.hidden)
		words.replaceChildren(...windowsWords(profile.window));
}
