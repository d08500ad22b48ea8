  // Everything below is the same for every generalization; nothing here needs another file, or the network.

  const missing = Symbol("missing");

  const refuse = (attribute, expected) => {
    // never says what was given
    throw Object.assign(new TypeError(`${attribute.name}: expected ${expected}`), { expected });
  };

  /** Read a number: a Number, a BigInt, or its digits, so that integers beyond 2^53 stay exact. */
  function readNumber(attribute, value) {
    if (typeof value === "bigint") return value;
    if (typeof value === "number") {
      if (Number.isNaN(value)) return missing;
      return Number.isFinite(value) ? value : refuse(attribute, "a finite number");
    }
    if (typeof value !== "string") return refuse(attribute, "a number");
    const text = value.trim();
    if (text === "") return missing;
    if (/^[+-]?\d+$/.test(text)) return BigInt(text.replace(/^\+/, ""));
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return refuse(attribute, "a number");
    const number = Number(text);
    return Number.isFinite(number) ? number : refuse(attribute, "a finite number");
  }

  const fraction = (digits) => BigInt((digits || "").padEnd(6, "0").slice(0, 6));

  /** Microseconds of "2024-05-31", "2024-05-31T08:30:00.25+02:00" and the like; without a zone it is UTC. */
  function readCalendar(attribute, text) {
    const parts =
      /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?)?\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?$/i.exec(text);
    if (!parts) return refuse(attribute, "a date such as 2024-05-31, or a date and a time");
    const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part || 0));
    const date = new Date(0);
    date.setUTCFullYear(year, month - 1, day);
    if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 59) {
      return refuse(attribute, "a date and a time that exist");
    }
    const zone = /^([+-])(\d{2}):?(\d{2})?$/.exec(parts[8] || "");
    const offset = zone ? (zone[1] === "-" ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3] || 0)) : 0;
    const seconds = hour * 3600 + (minute - offset) * 60 + second;
    return (BigInt(date.getTime()) + BigInt(seconds) * 1000n) * 1000n + fraction(parts[7]);
  }

  /** Microseconds of a moment: text, a Date, seconds for durations; a BigInt is taken as microseconds. */
  function readMoment(attribute, value) {
    if (typeof value === "bigint") return value;
    if (value instanceof Date) {
      return Number.isNaN(value.getTime()) ? missing : BigInt(value.getTime()) * 1000n;
    }
    const text = typeof value === "number" && attribute.moment === "duration" ? String(value) : value;
    if (typeof text !== "string") return refuse(attribute, "text such as 2024-05-31, or a Date");
    if (text.trim() === "" || text === "NaN") return missing;
    if (attribute.moment === "duration") {
      const parts = /^([+-]?)(\d+)(?:\.(\d+))?$/.exec(text.trim());
      if (!parts) return refuse(attribute, "a number of seconds");
      const length = BigInt(parts[2]) * 1000000n + fraction(parts[3]);
      return parts[1] === "-" ? -length : length;
    }
    if (attribute.moment === "time") {
      const parts = /^(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?$/.exec(text.trim());
      if (!parts || parts[1] > "23" || parts[2] > "59" || (parts[3] || "") > "59") {
        return refuse(attribute, "a time such as 08:30");
      }
      const seconds = Number(parts[1]) * 3600 + Number(parts[2]) * 60 + Number(parts[3] || 0);
      return BigInt(seconds) * 1000000n + fraction(parts[4]);
    }
    return readCalendar(attribute, text.trim());
  }

  /** One key for values that are equal: 1, 1n, 1.0, "1" and true are; 0 and -0 are. */
  function keyOf(attribute, value) {
    if (attribute.values === "text") return typeof value === "string" ? value : refuse(attribute, "text");
    if (typeof value === "boolean") return value ? "1" : "0";
    if (attribute.values === "boolean" && typeof value === "string") return refuse(attribute, "true or false");
    const number = readNumber(attribute, value);
    if (number === missing) return missing;
    return typeof number === "number" && !Number.isInteger(number) ? String(number) : String(BigInt(number));
  }

  for (const attribute of attributes) {
    if (attribute.kind !== "category") continue;
    attribute.bucketByKey = new Map(attribute.categories.map(([value, bucket]) => [keyOf(attribute, value), bucket]));
  }

  /** The number of the bucket of one value; null, undefined and NaN are missing. */
  function bucketOf(name, value) {
    const attribute = byName.get(name);
    if (attribute === undefined) throw new TypeError(`${name}: not an attribute of this generalization`);
    if (attribute.labels.length === 1) return 0;
    if (value === null || value === undefined) return attribute.missing;
    if (attribute.kind === "category") {
      const key = keyOf(attribute, value);
      if (key === missing) return attribute.missing;
      return attribute.bucketByKey.has(key) ? attribute.bucketByKey.get(key) : attribute.unseen;
    }
    const point = attribute.kind === "moment" ? readMoment(attribute, value) : readNumber(attribute, value);
    if (point === missing) return attribute.missing;
    let bucket = 0;
    // JavaScript compares a Number with a BigInt exactly.
    while (bucket < attribute.cuts.length && point > attribute.cuts[bucket]) bucket += 1;
    return bucket;
  }

  /** The minimized record: a bucket for every attribute, and nothing else of what was given. */
  function generalize(record, output = "labels") {
    return Object.fromEntries(
      attributes.map((attribute) => {
        const value = Object.prototype.hasOwnProperty.call(record, attribute.name) ? record[attribute.name] : null;
        const bucket = bucketOf(attribute.name, value);
        return [attribute.name, output === "codes" ? bucket : attribute.labels[bucket]];
      }),
    );
  }

  return { fingerprint, attributes, bucketOf, generalize };
})();

if (typeof module !== "undefined" && module.exports) module.exports = generalization;
