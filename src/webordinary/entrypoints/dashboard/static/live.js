// Refreshes the part of the page marked data-live when an event says that something happened to it.
// Without this script every page still works; it only has to be loaded again.
"use strict";

(() => {
  const REFRESH_MS = 120;
  const RETRY_MS = 5000;
  const live = document.getElementById("live");
  const state = document.getElementById("live-state");
  let source = null;
  let lastSeq = live ? live.dataset.after : "0";
  let pending = 0;
  let running = false;
  let again = false;

  const say = (words) => { if (state) state.textContent = words; };

  const openIds = () => new Set([...live.querySelectorAll("details[id]")].filter((d) => d.open).map((d) => d.id));

  // Keeps what the reader opened, closed or stands on.
  const swap = (html) => {
    const known = new Set([...live.querySelectorAll("details[id]")].map((d) => d.id));
    const opened = openIds();
    const focused = document.activeElement;
    const focusId = live.contains(focused) ? focused.id : "";
    const focusHref = live.contains(focused) ? focused.getAttribute("href") : null;
    // Text that is being written, or was written and not sent, stays: the next event brings the news.
    if (focused && live.contains(focused) && focused.matches("textarea, input, select")) return;
    if ([...live.querySelectorAll("textarea, input, option")].some(changed)) return;
    live.innerHTML = html;
    for (const details of live.querySelectorAll("details[id]")) {
      if (known.has(details.id)) details.open = opened.has(details.id);
    }
    const same = (focusId && document.getElementById(focusId))
      || (focusHref && [...live.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focusHref));
    if (same) same.focus({ preventScroll: true });
    tick();
  };

  const changed = (field) => {
    if (field.matches("option")) return field.defaultSelected && !field.selected;
    return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  };

  const refresh = async () => {
    if (running) { again = true; return; }
    running = true;
    try {
      const answer = await fetch(live.dataset.live, { cache: "no-store" });
      if (answer.ok) swap(await answer.text());
    } catch {
      // The server is away; the stream comes back with it and asks again.
    } finally {
      running = false;
      if (again) { again = false; soon(); }
    }
  };

  const soon = () => {
    if (pending) return;
    pending = setTimeout(() => { pending = 0; refresh(); }, REFRESH_MS);
  };

  const concerns = (event) => !live.dataset.mail || event.email_id === live.dataset.mail;

  const listen = () => {
    source = new EventSource(`/events?after=${encodeURIComponent(lastSeq)}`);
    source.onopen = () => say("Live.");
    source.onmessage = (message) => {
      lastSeq = message.lastEventId;
      if (concerns(JSON.parse(message.data))) soon();
    };
    source.addEventListener("behind", (message) => { lastSeq = message.lastEventId; soon(); });
    source.onerror = () => {
      say("Waiting for the server.");
      if (source && source.readyState === EventSource.CLOSED) {
        hush();
        setTimeout(() => { if (!document.hidden && !source) { listen(); soon(); } }, RETRY_MS);
      }
    };
  };

  const hush = () => { if (source) { source.close(); source = null; } };

  const span = (seconds) => {
    if (seconds < 120) return `${seconds} s`;
    if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
    if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
    return `${Math.round(seconds / 86400)} days`;
  };

  const tick = () => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
      time.textContent = seconds < 5 ? "just now" : `${span(seconds)} ago`;
    }
    for (const time of document.querySelectorAll("time[data-since]")) {
      const seconds = Math.floor((Date.now() - Date.parse(time.dateTime)) / 1000);
      if (seconds > 0) time.textContent = span(seconds);
    }
  };

  if (live) {
    listen();
    setInterval(tick, 1000);
    // A browser allows few connections to one host: a hidden tab closes its stream.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) hush();
      else if (!source) { listen(); soon(); }
    });
    // Leaving the page ends the stream at once; coming back through the history opens it again.
    addEventListener("pagehide", hush);
    addEventListener("pageshow", (event) => { if (event.persisted && !source) { listen(); soon(); } });
  }

  for (const form of document.querySelectorAll("form[method=post]")) {
    const button = form.querySelector("button[type=submit]");
    const label = button.textContent;
    form.addEventListener("submit", () => { button.disabled = true; button.textContent = "Sending…"; });
    addEventListener("pageshow", () => { button.disabled = false; button.textContent = label; });
  }
})();
