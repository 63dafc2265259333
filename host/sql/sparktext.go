package sql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var typedNumber = regexp.MustCompile(`^((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(BD|[LSYDF])$`)

var numberTypes = map[string]string{"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT"}

// sparkNumber gives a number with the letter of its type as a cast, and a whole
// number beyond BIGINT as the DECIMAL that it is.
func sparkNumber(text string) string {
	bare := strings.TrimPrefix(text, "-")
	sign := text[:len(text)-len(bare)]
	m := typedNumber.FindStringSubmatch(strings.ToUpper(bare))
	whole, fraction, point := strings.Cut(bare, ".")
	onlyDigits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	switch digits := strings.TrimLeft(bare, "0"); {
	case m != nil && m[2] != "BD":
		// Twice, by which a number in the text is known from a CAST.
		t := numberTypes[m[2]]
		return fmt.Sprintf("CAST(CAST(%s%s AS %s) AS %s)", sign, m[1], t, t)
	case m != nil && strings.ContainsAny(m[1], ".E"):
		return sparkNumber(sign + m[1])
	case m != nil:
		return fmt.Sprintf("CAST('%s%s' AS DECIMAL(%d,0))", sign, m[1], len(m[1]))
	case point && strings.Trim(whole, "0") == "" && onlyDigits(fraction) && len(fraction) <= maxDigits:
		// 0.1 has one digit to Spark.
		return fmt.Sprintf("CAST(%s0.%s AS DECIMAL(%d,%d))", sign, fraction, len(fraction), len(fraction))
	case digits == "2147483648" && sign != "":
		return "CAST('-2147483648' AS INTEGER)"
	case onlyDigits(digits) && len(digits) >= longDigits && len(digits) <= maxDigits:
		if _, err := strconv.ParseInt(sign+digits, 10, 64); err != nil {
			return fmt.Sprintf("CAST('%s%s' AS DECIMAL(%d,0))", sign, digits, len(digits))
		} else if digits == "9223372036854775808" {
			return "CAST('-9223372036854775808' AS BIGINT)"
		}
	}
	return text
}

// unescape gives the text between quotes that Spark means by it
// (apache/spark sql/catalyst/src/main/scala/org/apache/spark/sql/catalyst/util/SparkParserUtils.scala).
func unescape(s string, quote byte) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == quote && i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c) // doubled
			i++
			continue
		}
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		if n, size := codePoint(s[i:]); size > 0 {
			b.WriteRune(n)
			i += size - 1
			continue
		}
		switch c := s[i]; c {
		case 'b':
			b.WriteByte('\b')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'Z':
			b.WriteByte(0x1A)
		case '%', '_':
			b.WriteByte('\\') // kept for LIKE
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// codePoint reads what follows a backslash as \uXXXX, \UXXXXXXXX or three octal digits.
func codePoint(s string) (rune, int) {
	digits, base, skip := 0, 16, 1
	switch {
	case s[0] == 'u':
		digits = 4
	case s[0] == 'U':
		digits = 8
	case s[0] >= '0' && s[0] <= '1':
		digits, base, skip = 3, 8, 0
	}
	if digits == 0 || len(s) < skip+digits {
		return 0, 0
	}
	n, err := strconv.ParseUint(s[skip:skip+digits], base, 31)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, 0
	}
	return rune(n), skip + digits
}

// sparkLiteral writes a text as a literal of Spark's.
func sparkLiteral(s string) string {
	return quoteText(strings.ReplaceAll(s, `\`, `\\`))
}
