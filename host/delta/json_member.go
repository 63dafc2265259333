package delta

import (
	"encoding/json"
	"strings"
)

// eachMember gives the members of a JSON object, values as they are written,
// without decoding what is in them. It tells whether the text was an object; what
// is inside of values is not checked beyond where they end.
func eachMember(text string, f func(key, value string)) bool {
	i := blank(text, 0)
	if i >= len(text) || text[i] != '{' {
		return false
	}
	if i = blank(text, i+1); i < len(text) && text[i] == '}' {
		return blank(text, i+1) == len(text)
	}
	for {
		end := endOfString(text, i)
		if end < 0 {
			return false
		}
		key := text[i+1 : end-1]
		if strings.IndexByte(key, '\\') >= 0 && json.Unmarshal([]byte(text[i:end]), &key) != nil {
			return false
		}
		if i = blank(text, end); i >= len(text) || text[i] != ':' {
			return false
		}
		i = blank(text, i+1)
		if end = endOfValue(text, i); end < 0 {
			return false
		}
		f(key, text[i:end])
		i = blank(text, end)
		switch {
		case i < len(text) && text[i] == ',':
			i = blank(text, i+1)
		case i < len(text) && text[i] == '}':
			return blank(text, i+1) == len(text)
		default:
			return false
		}
	}
}

func blank(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// endOfString gives the index behind the string that begins at i, or -1.
func endOfString(text string, i int) int {
	if i >= len(text) || text[i] != '"' {
		return -1
	}
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// endOfValue gives the index behind the value that begins at i, or -1.
func endOfValue(text string, i int) int {
	start, depth := i, 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i = endOfString(text, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return ending(start, i)
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return ending(start, i)
			}
		}
		i++
	}
	return -1
}

// ending is the end of a number or word, of which there must be something.
func ending(start, end int) int {
	if end == start {
		return -1
	}
	return end
}
