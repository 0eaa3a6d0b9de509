// A Cloudflare Email Worker that hands every mail of a route to WebOrdinary. docs/mail.md shows how to deploy it.
// Variables: WEBORDINARY_URL, such as https://mail.example.com/mail; secret: WEBORDINARY_SECRET (setting push_secret).

async function signature(secret, timestamp, from, to, raw) {
  const bytes = new TextEncoder();
  const head = bytes.encode(`${timestamp}\n${from}\n${to}\n`);
  const signed = new Uint8Array(head.length + raw.length);
  signed.set(head);
  signed.set(raw, head.length);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, ["sign"]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return "sha256=" + [...mac].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export default {
  async email(message, env) {
    const raw = new Uint8Array(await new Response(message.raw).arrayBuffer());
    const timestamp = Math.floor(Date.now() / 1000).toString();
    const answer = await fetch(env.WEBORDINARY_URL, {
      method: "POST",
      body: raw,
      headers: {
        "Content-Type": "message/rfc822",
        "X-WebOrdinary-Timestamp": timestamp,
        "X-WebOrdinary-From": message.from,
        "X-WebOrdinary-To": message.to,
        "X-WebOrdinary-Signature": await signature(env.WEBORDINARY_SECRET, timestamp, message.from, message.to, raw),
      },
    });
    if (answer.ok) return;
    const { error } = await answer.json().catch(() => ({ error: `HTTP ${answer.status}` }));
    // Only these are about the mail itself. All else is ours to mend: an exception makes the sender's server try again.
    if (![404, 413, 422].includes(answer.status)) throw new Error(error);
    message.setReject(error);
  },
};
