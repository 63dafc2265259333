package sql

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/weir-data/weir/host/fault"
)

// javaPattern turns a regular expression of Java's into one of RE2's that matches
// the same, or refuses it. atEnd says what $ becomes: Java's also matches before a
// line break that ends the text.
type javaPattern struct {
	src    string
	out    strings.Builder
	ends   int  // how many $ there are
	last   bool // a $ is the last thing
	dotAll bool
	fold   bool
}

const (
	lineBreaks = `\n\r\x{85}\x{2028}\x{2029}`
	lastBreak  = `(\r\n|[` + lineBreaks + `])?\z`
)

func regexFault(src, format string, args ...any) error {
	return fault.New("UNSUPPORTED_REGEX", "the regular expression %q %s", src, fmt.Sprintf(format, args...)).
		WithHint("Java's and RE2's meaning differ there: write it another way")
}

func translateRegex(src string) (*javaPattern, error) {
	j := &javaPattern{src: src}
	if err := j.translate(); err != nil {
		return nil, err
	}
	if _, err := regexp.Compile(strings.ReplaceAll(j.out.String(), `\z`, `$`)); err != nil {
		return nil, regexFault(src, "is not one that is supported: %v", err)
	}
	if j.fold {
		for _, r := range src {
			if r >= utf8.RuneSelf {
				return nil, regexFault(src, "ignores the case of a letter beyond ASCII")
			}
		}
	}
	return j, nil
}

func (j *javaPattern) translate() error {
	s := j.src
	for i := 0; i < len(s); {
		j.last = false
		switch c := s[i]; c {
		case '\\':
			n, err := j.escape(s[i:], false)
			if err != nil {
				return err
			}
			i += n
		case '[':
			n, err := j.class(s[i:])
			if err != nil {
				return err
			}
			i += n
		case '(':
			n, err := j.group(s[i:])
			if err != nil {
				return err
			}
			i += n
		case '.':
			if j.dotAll {
				j.out.WriteString(`(?s:.)`)
			} else {
				j.out.WriteString(`[^` + lineBreaks + `]`)
			}
			i++
		case '$':
			j.ends++
			j.last = i == len(s)-1
			j.out.WriteString(lastBreak)
			i++
		case '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 2 || strings.Trim(s[i+1:i+end], "0123456789,") != "" || s[i+1] == ',' {
				return regexFault(j.src, "has a { that begins no count")
			}
			j.out.WriteString(s[i : i+end+1])
			i += end + 1
			if i < len(s) && s[i] == '+' {
				return regexFault(j.src, "has a possessive count")
			}
		case '*', '+', '?':
			j.out.WriteByte(c)
			i++
			if i < len(s) && s[i] == '+' {
				return regexFault(j.src, "has a possessive count")
			}
		default:
			j.out.WriteByte(c)
			i++
		}
	}
	return nil
}

// escape reads what begins with a backslash.
func (j *javaPattern) escape(s string, inClass bool) (int, error) {
	if len(s) < 2 {
		return 0, regexFault(j.src, "ends with a backslash")
	}
	switch c := s[1]; {
	case c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 't' || c == 'n' || c == 'r' || c == 'f':
		j.out.WriteString(s[:2])
	case c == 's' && inClass:
		j.out.WriteString(`\s\x0b`)
	case c == 's':
		j.out.WriteString(`[\s\x0b]`)
	case c == 'S' && !inClass:
		j.out.WriteString(`[^\s\x0b]`)
	case (c == 'A' || c == 'z') && !inClass:
		j.out.WriteString(s[:2])
	case c == 'p' || c == 'P':
		end := strings.IndexByte(s, '}')
		if !strings.HasPrefix(s[2:], "{") || end < 4 || end > 5 {
			return 0, regexFault(j.src, "has a class that is not supported: %s", s[:min(len(s), 8)])
		}
		j.out.WriteString(s[:end+1])
		return end + 1, nil
	case c < utf8.RuneSelf && !isWordPart(c) || c == '$':
		j.out.WriteString(regexp.QuoteMeta(s[1:2]))
		if inClass && (c == '-' || c == '^' || c == ']') {
			return 2, j.requote(c)
		}
	default:
		return 0, regexFault(j.src, "has %s, which is not supported", s[:2])
	}
	return 2, nil
}

// requote escapes a character that counts in a class, which QuoteMeta may leave.
func (j *javaPattern) requote(c byte) error {
	text := j.out.String()
	j.out.Reset()
	j.out.WriteString(strings.TrimSuffix(strings.TrimSuffix(text, string(c)), `\`) + `\` + string(c))
	return nil
}

func (j *javaPattern) class(s string) (int, error) {
	j.out.WriteByte('[')
	i := 1
	if strings.HasPrefix(s[i:], "^") {
		j.out.WriteByte('^')
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		return 0, regexFault(j.src, "has a class that begins with ]")
	}
	for i < len(s) {
		switch c := s[i]; {
		case c == ']':
			j.out.WriteByte(']')
			return i + 1, nil
		case c == '\\':
			n, err := j.escape(s[i:], true)
			if err != nil {
				return 0, err
			}
			i += n
		case c == '[', strings.HasPrefix(s[i:], "&&"):
			return 0, regexFault(j.src, "has a class within a class")
		default:
			j.out.WriteByte(c)
			i++
		}
	}
	return 0, regexFault(j.src, "has a class that does not end")
}

func (j *javaPattern) group(s string) (int, error) {
	if !strings.HasPrefix(s, "(?") {
		j.out.WriteByte('(')
		return 1, nil
	}
	switch {
	case strings.HasPrefix(s, "(?:"):
		j.out.WriteString("(?:")
		return 3, nil
	case strings.HasPrefix(s, "(?i)"), strings.HasPrefix(s, "(?s)"), strings.HasPrefix(s, "(?is)"), strings.HasPrefix(s, "(?si)"):
		if j.out.Len() > 0 {
			return 0, regexFault(j.src, "has flags in its middle")
		}
		end := strings.IndexByte(s, ')')
		j.fold, j.dotAll = strings.Contains(s[:end], "i"), strings.Contains(s[:end], "s")
		if j.fold {
			j.out.WriteString("(?i)")
		}
		return end + 1, nil
	}
	return 0, regexFault(j.src, "has a group that looks around or has flags")
}

// matchesNothing reports a pattern that the empty text matches.
func (j *javaPattern) matchesNothing() bool {
	re, err := regexp.Compile(strings.ReplaceAll(j.out.String(), `\z`, `$`))
	return err != nil || re.MatchString("")
}

// groups counts the groups of the pattern itself.
func (j *javaPattern) groups() int {
	re, err := regexp.Compile(strings.ReplaceAll(j.out.String(), `\z`, `$`))
	if err != nil {
		return 0
	}
	return re.NumSubexp() - j.ends
}

// whole gives the pattern for a function that needs to know where a match ends: a $
// may only be the last thing, and the line break before the end is group groups+1.
func (j *javaPattern) whole() (string, error) {
	if j.ends > 1 || j.ends == 1 && (!j.last || strings.Contains(j.src, "|")) {
		return "", regexFault(j.src, "has a $ that is not its end")
	}
	return j.out.String(), nil
}

// literalPattern gives the text that a pattern stands for when it is a plain one.
func literalPattern(src string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == '\\' && i+1 < len(src) && src[i+1] < utf8.RuneSelf && !isWordPart(src[i+1]):
			i++
			b.WriteByte(src[i])
		case c == '[' && i+2 < len(src) && src[i+2] == ']' && src[i+1] != '^' && src[i+1] != '\\' && src[i+1] < utf8.RuneSelf:
			b.WriteByte(src[i+1])
			i += 2
		case strings.IndexByte(`\.[]{}()*+-?^$|`, c) >= 0 && c != '-':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), b.Len() > 0
}

// regex gives the functions of regular expressions their meaning.
func regex(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if name == "regexp_matches" {
		return false, nil // DuckDB's own
	}
	if len(args) < 2 {
		return true, arity(name, len(args))
	}
	src, ok := constantText(args[1].(map[string]any))
	if !ok {
		return true, fault.New("UNSUPPORTED_REGEX", "the regular expression of %s is not a constant text", strings.Replace(name, "regexp_full_match", "RLIKE", 1)).
			WithHint("Write it down, or use contains, startswith, instr")
	}
	if name == "split" {
		return splitText(r, n, args, src, ctx)
	}
	j, err := translateRegex(src)
	if err != nil {
		return true, err
	}
	value := func(template string, more ...any) (bool, error) {
		return true, r.wait(n, name+" "+template, append(args[:1:1], more...), ctx, signed(name, "s"+strings.Repeat(".", len(more)), template))
	}
	anywhere := "(?:" + j.out.String() + ")"
	if j.fold {
		anywhere = j.out.String()
	}
	switch name {
	case "rlike", "regexp", "regexp_like", "regexp_full_match":
		return value("regexp_matches(__1, " + quoteText(anywhere) + ")")
	}
	whole, err := j.whole()
	if err != nil {
		return true, err
	}
	switch name {
	case "regexp_replace":
		return replaceMatches(j, whole, args, value)
	case "regexp_extract", "regexp_extract_all":
		group := 1
		if len(args) == 3 {
			if group, ok = constantWhole(args[2].(map[string]any)); !ok {
				return true, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant group", name)
			}
		}
		if group < 0 || group > j.groups() {
			return true, fault.New("INVALID_PARAMETER_VALUE", "%s asks for group %d of %d", name, group, j.groups())
		}
		if name == "regexp_extract_all" && j.matchesNothing() || group == 0 && j.ends > 0 {
			return true, regexFault(src, "may match nothing, or a line break at the end")
		}
		return value(fmt.Sprintf("%s(__1, %s, %d)", name, quoteText(whole), group))
	}
	if j.matchesNothing() || j.ends > 0 {
		return true, regexFault(src, "may match nothing, or a line break at the end")
	}
	if name == "regexp_count" {
		return value("CAST(len(regexp_extract_all(__1, " + quoteText(whole) + ")) AS INTEGER)")
	}
	return value("CASE WHEN regexp_matches(__1, " + quoteText(whole) + ") THEN regexp_extract(__1, " + quoteText(whole) + ") END")
}

// replaceMatches is regexp_replace: every match, groups written $1.
func replaceMatches(j *javaPattern, whole string, args []any, value func(string, ...any) (bool, error)) (bool, error) {
	if len(args) != 3 {
		return true, fault.New("NOT_SUPPORTED", "regexp_replace takes a text, a pattern and a replacement")
	}
	if j.matchesNothing() {
		return true, regexFault(j.src, "may match nothing, and what is replaced then differs")
	}
	with, ok := constantText(args[2].(map[string]any))
	if !ok && j.ends == 0 {
		return value("CASE WHEN contains(__2, '$') OR contains(__2, '\\') THEN error('[UNSUPPORTED_REPLACEMENT] a replacement that is not in the text has a $ or a backslash') ELSE regexp_replace(__1, "+quoteText(whole)+", __2, 'g') END", args[2])
	}
	if !ok {
		return true, fault.New("UNSUPPORTED_REPLACEMENT", "the replacement of regexp_replace is not a constant text")
	}
	duck, err := groupReferences(with, j.groups())
	if err != nil {
		return true, err
	}
	if j.ends > 0 {
		duck += fmt.Sprintf(`\%d`, j.groups()+1)
	}
	return value("regexp_replace(__1, " + quoteText(whole) + ", " + quoteText(duck) + ", 'g')")
}

// groupReferences turns $1 into \1 and \$ into $.
func groupReferences(s string, groups int) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$' && i+1 < len(s) && isDigit(s[i+1]):
			if int(s[i+1]-'0') > groups || i+2 < len(s) && isDigit(s[i+2]) {
				return "", fault.New("UNSUPPORTED_REPLACEMENT", "the replacement %q of regexp_replace names a group that is not there, or has two digits", s)
			}
			b.WriteByte('\\')
			i++
			b.WriteByte(s[i])
		case s[i] == '$':
			return "", fault.New("UNSUPPORTED_REPLACEMENT", "the replacement %q of regexp_replace has a $ that starts no group number", s)
		case s[i] == '\\' && i+1 < len(s):
			i++
			if s[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// splitText is split, with a limit when there is one.
func splitText(r *rewriter, n node, args []any, src string, ctx place) (bool, error) {
	limit := -1
	if len(args) == 3 {
		var ok bool
		if limit, ok = constantWhole(args[2].(map[string]any)); !ok {
			return true, fault.New("NON_FOLDABLE_ARGUMENT", "split takes a constant limit")
		}
	}
	template := ""
	if text, ok := literalPattern(src); ok {
		q := quoteText(text)
		template = "string_split(__1, " + q + ")"
		if limit > 0 {
			template = fmt.Sprintf("CASE WHEN len(string_split(__1, %[1]s)) <= %[2]d THEN string_split(__1, %[1]s) ELSE list_append(list_slice(string_split(__1, %[1]s), 1, %[2]d - 1), array_to_string(list_slice(string_split(__1, %[1]s), %[2]d, -1), %[1]s)) END", q, limit)
		}
	} else {
		j, err := translateRegex(src)
		switch {
		case err != nil:
			return true, err
		case j.matchesNothing() || j.ends > 0 || limit > 0:
			return true, regexFault(src, "may match nothing or a line break at the end, or split has a limit")
		}
		template = "string_split_regex(__1, " + quoteText(j.out.String()) + ")"
	}
	return true, r.wait(n, "split "+template, args[:1], ctx, signed("split", "s", template))
}

// like is LIKE and ILIKE: a backslash escapes, which it does not in DuckDB.
func like(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 2 {
		return false, nil
	}
	pattern, ok := constantText(args[1].(map[string]any))
	if ok && !strings.Contains(pattern, `\`) {
		return false, nil
	}
	for i := 0; ok && i < len(pattern); i++ {
		if pattern[i] == '\\' {
			if i++; i == len(pattern) || strings.IndexByte(`\%_`, pattern[i]) < 0 {
				return true, fault.New("INVALID_FORMAT", "the pattern %q of LIKE has a backslash that escapes nothing", pattern)
			}
		}
	}
	call := map[string]string{"~~": "like_escape", "!~~": "not_like_escape", "~~*": "ilike_escape", "!~~*": "not_ilike_escape"}[name]
	out := callNode(call, args[0], args[1], textConstant(`\`))
	n.become(out)
	return true, nil
}

// substringIndex is substring_index with a constant count.
func substringIndex(r *rewriter, n node, name string, args []any, ctx place) (bool, error) {
	if len(args) != 3 {
		return true, arity(name, len(args))
	}
	count, ok := constantWhole(args[2].(map[string]any))
	delimiter, isText := constantText(args[1].(map[string]any))
	if !ok || !isText {
		return true, fault.New("NON_FOLDABLE_ARGUMENT", "%s takes a constant delimiter and count", name)
	}
	parts := "string_split(__1, " + quoteText(delimiter) + ")"
	template := fmt.Sprintf("array_to_string(list_slice(%s, 1, %d), %s)", parts, count, quoteText(delimiter))
	switch {
	case count == 0 || delimiter == "":
		template = "CASE WHEN __1 IS NOT NULL THEN '' END"
	case count < 0:
		template = fmt.Sprintf("array_to_string(list_slice(%[1]s, greatest(len(%[1]s) - %[2]d, 1), -1), %[3]s)", parts, -count-1, quoteText(delimiter))
	}
	return true, r.wait(n, name+template, args[:1], ctx, signed(name, "s", template))
}
