"""Computes what Spark gives for every line of expressions.sql.

    python facts.py 2>/dev/null     # with pyspark 4.0.1 and a JVM

Facts that are there stay: remove facts.jsonl to compute all again, in ten minutes.

A line is an expression, or a query when it begins with SELECT, WITH or VALUES. What
stands in «…» is a constant that becomes a column for the second of the two facts
of a line. facts.jsonl gets {sql, type, rows} or {sql, error}; "columns" is there when
the second fact differs from the first. rows are JSON texts, one column's value per
row, or the list of the columns' values.
"""
import base64, datetime, decimal, json, math, os, re, struct, sys, tempfile, time

os.environ["TZ"] = "UTC"
time.tzset()
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType

HERE = os.path.dirname(os.path.abspath(__file__))
QUERY = re.compile(r"(SELECT|WITH|VALUES)\b", re.I)
CONSTANT = re.compile("«(.*?)»")


def text(v, t):
    """The value as host/relation's AppendJSON writes it."""
    if v is None:
        return "null"
    if isinstance(t, ArrayType):
        return "[" + ",".join(text(e, t.elementType) for e in v) + "]"
    if isinstance(t, MapType):
        if t.keyType.typeName() != "string":
            return "[" + ",".join('{"key":' + text(k, t.keyType) + ',"value":' + text(e, t.valueType) + "}" for k, e in v.items()) + "]"
        return "{" + ",".join(key(k, t.keyType) + ":" + text(e, t.valueType) for k, e in v.items()) + "}"
    if isinstance(t, StructType):
        return "{" + ",".join(json.dumps(f.name) + ":" + text(v[i], f.dataType) for i, f in enumerate(t.fields)) + "}"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, float):
        if math.isnan(v):
            return '"NaN"'
        if math.isinf(v):
            return '"Infinity"' if v > 0 else '"-Infinity"'
        return repr(v) if t.typeName() == "double" else single(v)
    if isinstance(v, (bytes, bytearray)):
        return json.dumps(base64.b64encode(bytes(v)).decode())
    if isinstance(v, datetime.datetime):
        s = v.strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
        if v.microsecond:
            s += (".%06d" % v.microsecond).rstrip("0")
        return json.dumps(s + ("Z" if t.typeName() == "timestamp" else ""))
    if isinstance(v, datetime.date):
        return json.dumps(v.isoformat())
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=False)
    return json.dumps(str(v))


def single(v):
    """The shortest text of a number of 32 bits."""
    for digits in range(1, 10):
        s = "%.*g" % (digits, v)
        if struct.pack("f", float(s)) == struct.pack("f", v):
            return s
    return repr(v)


def key(k, t):
    s = text(k, t)
    return s if s.startswith('"') else json.dumps(s)


def fact(spark, query):
    try:
        df = spark.sql(query)
        rows = df.collect()
    except Exception as e:
        name = None
        for get in ("getCondition", "getErrorClass"):
            try:
                name = name or getattr(e, get)()
            except Exception:
                pass
        if not name:
            m = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(e))
            name = m.group(1) if m else type(e).__name__
        return {"error": name}
    fields = df.schema.fields
    out = []
    for r in rows:
        cells = [text(r[i], f.dataType) for i, f in enumerate(fields)]
        out.append(cells[0] if len(cells) == 1 else "[" + ",".join(cells) + "]")
    if "ORDER BY" not in query.upper():
        out.sort()
    return {"type": ", ".join(f.dataType.simpleString() for f in fields), "rows": out}


def main():
    spark = (SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC")
             .config("spark.sql.ansi.enabled", "true").config("spark.ui.enabled", "false")
             .config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "OFF")
             .config("spark.sql.warehouse.dir", tempfile.mkdtemp()).getOrCreate())
    for line in open(os.path.join(HERE, "relations.sql"), encoding="utf-8"):
        name, query = line.split(":", 1)
        spark.sql(query).localCheckpoint().createOrReplaceTempView(name)
    path = os.path.join(HERE, "facts.jsonl")
    known = {}
    if os.path.exists(path):
        known = {f["sql"]: f for f in map(json.loads, open(path, encoding="utf-8"))}
    out = []
    for line in open(os.path.join(HERE, "expressions.sql"), encoding="utf-8"):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        if line in known:
            out.append(known[line])
            continue
        plain = CONSTANT.sub(lambda m: m.group(1), line)
        f = {"sql": line, **fact(spark, plain if QUERY.match(plain) else "SELECT " + plain + " AS v" * (" FROM VALUES" not in plain))}
        constants = CONSTANT.findall(line)
        if constants:
            n = iter(range(len(constants)))
            columns = CONSTANT.sub(lambda m: f"p{next(n)}", line)
            source = ", ".join(f"{c} AS p{i}" for i, c in enumerate(constants))
            second = fact(spark, f"SELECT {columns} AS v FROM (SELECT {source})")
            if second != {k: v for k, v in f.items() if k != "sql"}:
                f["columns"] = second
        out.append(f)
    with open(path, "w", encoding="utf-8") as w:
        for f in out:
            w.write(json.dumps(f, ensure_ascii=False) + "\n")
    print(len(out), "facts", file=sys.stderr)


main()
