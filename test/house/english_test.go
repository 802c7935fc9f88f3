package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// Rules of docs/contributing.md ("How we write") that a program can count: long sentences, and words in the place of a missing noun or verb.
const longest = 35 // words of a sentence

// The measures, in the order of the columns of testdata/english.txt; each is a number per 1,000 words.
var measures = []struct {
	name string
	word *regexp.Regexp // nil: sentences that are too long
}{
	{"long", nil},
	{"what", regexp.MustCompile(`(?i)\bwhat\b`)},
	{"says", regexp.MustCompile(`(?i)\b(say|says|said|saying|tell|tells|told|telling)\b`)},
	{"those", regexp.MustCompile(`(?i)\bthose\b|\bthe ones? (that|who|whom|which|whose)\b`)},
	// "Who" without a noun before it: after a preposition, a verb or a conjunction, or at the beginning.
	{"who", regexp.MustCompile(`(?i)\b(some|no|any|every)body\b|\b(some|any|every)one\b|\bwho(m)?ever\b|` +
		`(^|[,;:(]|\b(for|to|of|by|with|and|or|but|that|than|as|when|if|from|on|in|about|is|are|was|be|at|asks?|sees?|knows?|only|whether))\s*who\b`)},
	{"odd", regexp.MustCompile(`(?i)\b(brings?|bringing|brought|stands?|stood|recall(s|ed|ing)?|retells?|retold|heed(s|ed|ing)?|means|ways?|kept|sight)\b`)},
}

// counted is the text of one folder: its words, and the number of hits of each measure.
type counted struct {
	words int
	hits  []int
}

func (c *counted) perThousand(measure int) float64 {
	return 1000 * float64(c.hits[measure]) / float64(max(c.words, 1))
}

// TestTheEnglishOfEachFolderGetsNoWorse compares comments, documents and help texts with testdata/english.txt, whose limits only fall. -update lowers them.
func TestTheEnglishOfEachFolderGetsNoWorse(t *testing.T) {
	texts := map[string]*counted{}
	count := func(folder string, blocks []string) {
		if texts[folder] == nil {
			texts[folder] = &counted{hits: make([]int, len(measures))}
		}
		for _, block := range blocks {
			texts[folder].add(block)
		}
	}
	for _, d := range documents(t) {
		if d.name != "CHANGELOG.md" {
			count("documents", blocksOf(d.text))
		}
	}
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"build", "node_modules", "dist", "testdata"}, name)):
			return fs.SkipDir
		case entry.IsDir(), strings.HasSuffix(name, ".d.ts"): // generated files
			return nil
		}
		short, err := filepath.Rel(root, file)
		require.NoError(t, err)
		short = filepath.ToSlash(short)
		switch filepath.Ext(name) {
		case ".go":
			comments, help := inGo(t, file)
			count(englishFolder(short), comments)
			if strings.HasPrefix(short, "cmd/burano/") {
				count("help", help)
			}
		case ".ts", ".tsx":
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			count(englishFolder(short), inTypeScript(string(text)))
		}
		return nil
	}))

	table := filepath.Join("testdata", "english.txt")
	limits := limitsOf(t, table)
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(tableOf(texts, limits)), 0o644))
		return
	}
	for _, folder := range slices.Sorted(maps.Keys(texts)) {
		now, has := texts[folder], limits[folder]
		t.Logf("%s: %d words, %v", folder, now.words, now.hits)
		if has == nil {
			t.Errorf("%s is not in %s: run this test with -update", folder, table)
			continue
		}
		for i, measure := range measures {
			// Five more are no trend.
			allowed := has[i]*float64(now.words)/1000 + 5
			if found := float64(now.hits[i]); found > allowed {
				t.Errorf("%s: %q is met %d times in %d words, %.1f per 1,000; the limit is %.1f. Rewrite these sentences (docs/contributing.md, How we write)", folder, measure.name, now.hits[i], now.words, now.perThousand(i), has[i])
			} else if found < 0.8*allowed-8 {
				t.Errorf("%s: %q is met %.1f times per 1,000 words, far under the limit of %.1f: lower it with -update", folder, measure.name, now.perThousand(i), has[i])
			}
		}
	}
}

// englishFolder is the row of a file: its top-level folder, and one more level where a folder is large.
func englishFolder(file string) string {
	parts := strings.Split(file, "/")
	if slices.Contains([]string{"orchestrator", "nodes", "cmd", "web"}, parts[0]) && len(parts) > 2 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

var (
	linked    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	quoted    = regexp.MustCompile("`[^`]*`|\"[^\"]{0,160}\"|“[^”]*”") // code, messages and names of tests are not our sentences
	itemMarks = regexp.MustCompile(`^([-*]|[0-9]+\.) +`)
	rulers    = regexp.MustCompile(`^[|\s:-]+$`)
)

func (c *counted) add(block string) {
	block = quoted.ReplaceAllString(linked.ReplaceAllString(block, "$1"), "X")
	for _, sentence := range sentencesOf(block) {
		words := 0
		for _, word := range strings.Fields(sentence) {
			if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				words++
			}
		}
		c.words += words
		for i, measure := range measures {
			switch {
			case measure.word != nil:
				c.hits[i] += len(measure.word.FindAllString(sentence, -1))
			case words > longest:
				c.hits[i]++
			}
		}
	}
}

func sentencesOf(block string) (sentences []string) {
	words := strings.Fields(block)
	begin := 0
	for i, word := range words {
		ends := strings.ContainsAny(lastOf(strings.TrimRight(word, `"')*_]”`)), ".!?")
		if i == len(words)-1 || ends && !unicode.IsLower([]rune(words[i+1])[0]) {
			sentences = append(sentences, strings.Join(words[begin:i+1], " "))
			begin = i + 1
		}
	}
	return sentences
}

func lastOf(word string) string {
	if word == "" {
		return ""
	}
	return word[len(word)-1:]
}

// blocksOf returns the paragraphs, items and cells of a text in Markdown, or of a comment, without headlines and code.
func blocksOf(text string) (blocks []string) {
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			blocks = append(blocks, strings.Join(paragraph, " "))
			paragraph = nil
		}
	}
	blank, item := true, 0 // whether the former line was empty; the column of the present item's text
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		trimmed := strings.TrimLeft(line, " \t")
		indent := len(line) - len(trimmed)
		mark := itemMarks.FindString(trimmed)
		switch {
		case trimmed == "":
			end()
			blank = true
			continue
		case strings.HasPrefix(line, "\t"), blank && mark == "" && indent >= item+4: // code
			continue
		case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "<!--"):
			end()
			item = 0
		case strings.HasPrefix(trimmed, "|"):
			end()
			if !rulers.MatchString(trimmed) {
				blocks = append(blocks, strings.Split(strings.Trim(quoted.ReplaceAllString(trimmed, "X"), "|"), "|")...)
			}
		case mark != "":
			end()
			item = indent + len(mark)
			paragraph = append(paragraph, trimmed[len(mark):])
		default:
			if blank && indent < item {
				item = 0
			}
			paragraph = append(paragraph, trimmed)
		}
		blank = false
	}
	end()
	return blocks
}

// inGo returns the comments of a file, and the help texts of its commands: their Short and Long, and the descriptions of their flags.
func inGo(t *testing.T, file string) (comments, help []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	for _, group := range parsed.Comments {
		comments = append(comments, blocksOf(group.Text())...)
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && (key.Name == "Short" || key.Name == "Long") {
				help = append(help, blocksOf(literalOf(n.Value))...)
			}
		case *ast.CallExpr:
			if function, is := n.Fun.(*ast.SelectorExpr); is && len(n.Args) > 2 && flagMethods.MatchString(function.Sel.Name) {
				help = append(help, blocksOf(literalOf(n.Args[len(n.Args)-1]))...)
			}
		}
		return true
	})
	return comments, help
}

var flagMethods = regexp.MustCompile(`^(Bool|Int|Int64|Float64|Duration|String|StringSlice|StringArray|StringToString)?(Var)?P?$`)

// literalOf is the value of a text literal of one or more pieces, or "".
func literalOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return literalOf(e.X) + literalOf(e.Y)
	}
	return ""
}

// inTypeScript returns the comments of a file: lines that begin with //, the ends of lines behind one, and /* … */ at the beginning of a line.
func inTypeScript(text string) (comments []string) {
	var lines []string
	end := func() {
		comments = append(comments, blocksOf(strings.Join(lines, "\n"))...)
		lines = nil
	}
	inside := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if rest, is := strings.CutPrefix(strings.TrimPrefix(trimmed, "{"), "/*"); is && !inside {
			end()
			inside, trimmed = true, strings.TrimPrefix(rest, "*")
		}
		if inside {
			body, _, closed := strings.Cut(trimmed, "*/")
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(body), "* ")))
			if closed {
				end()
				inside = false
			}
			continue
		}
		if rest, is := strings.CutPrefix(trimmed, "//"); is {
			lines = append(lines, strings.TrimPrefix(rest, " "))
			continue
		}
		end()
		if _, behind, is := strings.Cut(trimmed, " // "); is {
			comments = append(comments, blocksOf(behind)...)
		}
	}
	end()
	return comments
}

func limitsOf(t *testing.T, table string) map[string][]float64 {
	limits := map[string][]float64{}
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		require.Len(t, fields, 1+len(measures), line)
		for _, field := range fields[1:] {
			limit, err := strconv.ParseFloat(field, 64)
			require.NoError(t, err)
			limits[fields[0]] = append(limits[fields[0]], limit)
		}
	}
	return limits
}

// tableOf writes today's numbers, a little raised for the work of others, and never above a former limit.
func tableOf(texts map[string]*counted, former map[string][]float64) string {
	var table strings.Builder
	fmt.Fprintf(&table, "# Limits per 1,000 words of comments (by folder), documents and help texts: they only fall. Written by go test ./test/house -run English -update.\n%-26s", "#")
	for _, measure := range measures {
		fmt.Fprintf(&table, " %6s", measure.name)
	}
	table.WriteString("\n")
	for _, folder := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&table, "%-26s", folder)
		for i := range measures {
			limit := 1.03 * texts[folder].perThousand(i)
			if has := former[folder]; has != nil {
				limit = min(limit, has[i])
			}
			fmt.Fprintf(&table, " %6.1f", limit)
		}
		table.WriteString("\n")
	}
	return table.String()
}

func TestSentencesAreFoundInMarkdownAndComments(t *testing.T) {
	blocks := blocksOf("# What a title says\n\nOne line\nand one more. Another `what` one.\n\n    code\n\n- an item\n  that goes on\n\n      code of it\n\n| a | `b|c` |\n|---|---|\n\tcode of a comment\n")
	require.Equal(t, []string{"One line and one more. Another `what` one.", "an item that goes on", " a ", " X "}, blocks)
	require.Equal(t, []string{"One is e.g. this.", "It ends (here).", "So"}, sentencesOf("One is e.g. this. It ends (here). So"))

	var c counted
	c.hits = make([]int, len(measures))
	c.add(`What it is, tells the one that asks: "what". A user who may do this stands here. Who asks, and for whom it is kept, is a matter of those who know. Somebody.`)
	require.Equal(t, []int{0, 1, 1, 2, 2, 2}, c.hits)
	require.Equal(t, []string{"a note", "behind", "a block of it"}, inTypeScript("// a note\nconst a = 'http://x' // behind\n/** a block\n * of it */\n"))
}
