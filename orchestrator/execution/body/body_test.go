package body_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/execution/body"
)

// record are scripts that record their calls, and return their arguments.
func record(calls *[]string) map[string]body.Script {
	script := func(name string) body.Script {
		return func(_ context.Context, method string, args []any, named map[string]any) (any, error) {
			line := name
			if method != "" {
				line += "." + method
			}
			for _, arg := range args {
				if s, is := arg.(string); is {
					line += " " + s
				}
			}
			*calls = append(*calls, line)
			if name == "broken" {
				return nil, errBroken
			}
			return map[string]any{"exitCode": int64(0), "stdout": "said " + line, "stderr": nil, "args": args, "named": named}, nil
		}
	}
	return map[string]body.Script{"deploy": script("deploy"), "getCount": func(context.Context, string, []any, map[string]any) (any, error) {
		return map[string]any{"stdout": " 4 "}, nil
	}, "run": script("run"), "broken": script("broken")}
}

// world has these scripts, and files that are noted as calls.
func world(calls *[]string) body.World {
	return body.World{Scripts: record(calls), Seed: "some", Write: func(_ context.Context, path, content string, add bool) error {
		*calls = append(*calls, fmt.Sprintf("write %s %s %t", path, content, add))
		return nil
	}, Read: func(_ context.Context, path string) (string, error) { return "content of " + path, nil }}
}

var errBroken = errors.New("script broken ended with 1")

var parameters = map[string]any{"name": "web", "port": int64(80), "php": true, "off": false, "none": nil, "empty": "", "big": 1.5,
	"ports": map[string]any{"80": int64(8080), "443": int64(8443)}, "commands": []any{"a", "b"}, "quoted": "it's"}

func TestBodiesCallScriptsAndReturnResults(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   any
		calls  []string
	}{
		"a single call":                {"return deploy(args.name).stdout", "said deploy web", []string{"deploy web"}},
		"a call without return":        {"deploy()\n", nil, []string{"deploy"}},
		"nothing but return":           {"return", nil, nil},
		"nothing":                      {"", nil, nil},
		"two steps":                    {"deploy('first')\nreturn run('second').stdout\n", "said run second", []string{"deploy first", "run second"}},
		"indented as a whole":          {"    deploy()\n    return run().exitCode", int64(0), []string{"deploy", "run"}},
		"format by position":           {"deploy('{0} {1}'.format(args.name, args.port))", nil, []string{"deploy web 80"}},
		"format without positions":     {"deploy('{} {}'.format(args.name, args.php))", nil, []string{"deploy web True"}},
		"format with names":            {"deploy('{n}:{p:05d}'.format(n=args.name, p=args.port))", nil, []string{"deploy web:00080"}},
		"braces of a format":           {"run('inspect -f={{.IP}} ' + args.name)", nil, []string{"run inspect -f={{.IP}} web"}},
		"doubled braces are braces":    {"run('{{{0}}}'.format(args.name))", nil, []string{"run {web}"}},
		"format with None":             {"deploy('{0}'.format(args.none))", nil, []string{"deploy None"}},
		"quotes around a field":        {`run("'{0}'".format(args.name))`, nil, []string{"run 'web'"}},
		"the operator % with a tuple":  {"run('%s on %05.1f %%' % (args.name, 2))", nil, []string{"run web on 002.0 %"}},
		"the operator % with a dict":   {"run('%(name)s' % args)", nil, []string{"run web"}},
		"the operator % with a text":   {"run('-%5s-' % args.name)", nil, []string{"run -  web-"}},
		"text joined with str":         {"deploy(args.name + ' ' + str(args.port))", nil, []string{"deploy web 80"}},
		"a dict of results":            {"return {\n  'cpu': int(getCount().stdout) * 100,\n  'memory': int(getCount().stdout)\n}", map[string]any{"cpu": int64(400), "memory": int64(4)}, nil},
		"if and else":                  {"if args.php:\n  deploy('php')\nelse:\n  deploy('plain')\nif args.off: deploy('never')", nil, []string{"deploy php"}},
		"elif":                         {"if args.off:\n  run('a')\nelif not args.empty and args.port == 80:\n  run('b')\nelse:\n  run('c')", nil, []string{"run b"}},
		"a loop over pairs":            {"options = ['-d']\nfor host, inner in args.ports.iteritems():\n  options.append('-p {0}:{1}'.format(host, inner))\nrun(' '.join(options).rstrip())", nil, []string{"run -d -p 443:8443 -p 80:8080"}},
		"a list that becomes longer":   {"o = []\no += ['a']\no.extend(args.commands)\nreturn o", []any{"a", "a", "b"}, nil},
		"a comprehension":              {"return [c.upper() for c in args.commands if c != 'b'] + [','.join(str(n) for n in range(3))]", []any{"A", "0,1,2"}, nil},
		"a dict comprehension":         {"return {k: v for k, v in args.ports.items() if int(k) > 100}", map[string]any{"443": int64(8443)}, nil},
		"a conditional expression":     {"return 'on' if args.php else 'off'", "on", nil},
		"a loop that ends":             {"n = 0\nwhile True:\n  n += 1\n  if n < 3: continue\n  break\nreturn n", int64(3), nil},
		"named arguments":              {"return deploy(port=args.port).named", map[string]any{"port": int64(80)}, []string{"deploy"}},
		"args as a whole":              {"return deploy(args).args[0]['name']", "web", []string{"deploy"}},
		"a method of a script":         {"return deploy.start('now').stdout", "said deploy.start now", []string{"deploy.start now"}},
		"an error that is caught":      {"try:\n  broken()\nexcept Exception as e:\n  return str(e)", errBroken.Error(), []string{"broken"}},
		"finally":                      {"try:\n  return 1\nfinally:\n  run('end')", int64(1), []string{"run end"}},
		"slices":                       {"s = 'abcdef'\nreturn [s[1:3], s[-2:], s[:2], s[0], [1, 2, 3][1:], 'a,b'.split(',')[-1]]", []any{"bc", "ef", "ab", "a", []any{int64(2), int64(3)}, "b"}, nil},
		"numbers":                      {"return [7 / 2, -7 // 2, -7 % 3, 2 ** 10, 7 / 2.0, 1e3, 0x10, int('0o10', 8) if False else 8, 10 - -3]", []any{int64(3), int64(-4), int64(2), int64(1024), 3.5, 1000.0, int64(16), int64(8), int64(13)}, nil},
		"comparisons":                  {"return [1 < 2 < 3, 1 != 1.0, 'a' in 'cat', 'x' not in args, None is None, args.php is True, 1 is True]", []any{true, false, true, true, true, true, false}, nil},
		"methods of texts":             {"return [' a '.strip(), 'a b  c'.split(), 'a\\nb'.splitlines(), 'xay'.replace('a', '-'), 'abc'.startswith(('x', 'ab')), '5'.zfill(3), 'a.b.c'.rsplit('.', 1), 'aXb'.lower(), 'abc'.find('c')]", []any{"a", []any{"a", "b", "c"}, []any{"a", "b"}, "x-y", true, "005", []any{"a.b", "c"}, "axb", int64(2)}, nil},
		"get with a default":           {"return [args.get('nothing', 5), args['name'], len(args.commands), sorted(args.ports.keys())]", []any{int64(5), "web", int64(2), []any{"443", "80"}}, nil},
		"json":                         {"import json\nreturn json.loads('{\"a\": [1, 2.5]}')['a'] + [json.dumps({'b': None})]", []any{int64(1), 2.5, `{"b":null}`}, nil},
		"lines joined by a backslash":  {"return 1 + \\\n  2", int64(3), nil},
		"comments":                     {"# first\nx = 1 # second\n\n  # third\nreturn x", int64(1), nil},
		"unpacking":                    {"a, (b, c) = 1, [2, 3]\na, b = b, a\nreturn [a, b, c]", []any{int64(2), int64(1), int64(3)}, nil},
		"triple quotes":                {"return '''a\nb'''", "a\nb", nil},
		"escapes":                      {`return 'a\tb\x41\u00e9' + r'\n'`, "a\tbAé" + `\n`, nil},
		"texts beside each other":      {"return ('a'\n  'b')", "ab", nil},
		"as Python writes values":      {"return str([None, True, 'it\\'s', 1.0, {'a': (1,)}])", `[None, True, "it's", 1.0, {'a': (1,)}]`, nil},
		"print is not heard":           {"print 'hello'\nprint('hello')\nreturn 1", int64(1), nil},
		"semicolons":                   {"a = 1; b = 2; return a + b", int64(3), nil},
		"an exception of its own":      {"try:\n  raise ValueError('no')\nexcept (KeyError, ValueError), e:\n  return str(e)", "no", nil},
		"enumerate and zip":            {"return [[n, a] for n, a in enumerate(args.commands)] + [list(p) for p in zip([1], [2])]", []any{[]any{int64(0), "a"}, []any{int64(1), "b"}, []any{int64(1), int64(2)}}, nil},
		"lambda, map and filter":       {"return ','.join(map(lambda t: '='.join([t[0], str(t[1])]), args.ports.items())) + str(filter(lambda x: x > 1, [1, 2]))", "443=8443,80=8080[2]", nil},
		"sorted by a key":              {"return sorted(['bb', 'a'], key=lambda s: len(s))", []any{"a", "bb"}, nil},
		"a file that is written":       {"import json\nimport uuid\nname = '/run/' + str(uuid.uuid4()) + '.json'\nwith open(name, 'w') as f:\n  json.dump({'a': 1}, f)\nrun(name)\nreturn len(name)", int64(46), []string{"write /run/1087ce2c-b525-4b7e-aa17-5fc8d6c25b99.json {\"a\":1} false", "run /run/1087ce2c-b525-4b7e-aa17-5fc8d6c25b99.json"}},
		"files without with":           {"f = open('/tmp/a', 'a')\nf.write('x')\nf.write('y')\nf.close()\nreturn open('/tmp/b').read()", "content of /tmp/b", []string{"write /tmp/a xy true"}},
		"a name of a variable is kept": {"x = 1\ny = [x for x in [5]]\nreturn x", int64(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := body.Parse(test.source)
			require.NoError(t, err)
			var calls []string
			got, err := read.Run(t.Context(), parameters, world(&calls))
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.calls, calls)
		})
	}
}

func TestBodiesThatCannotBeReadSayWhere(t *testing.T) {
	for source, want := range map[string]string{
		"return deploy(":                  "line 2 of the plan's Body: SyntaxError: unexpected end of the body",
		"a = 1\nreturn 'abc":              "line 2 of the plan's Body: SyntaxError: a text is not closed",
		"if a\n  b()":                     `line 1 of the plan's Body: SyntaxError: ":" is expected, and not the end of the line`,
		"def f():\n  return 1":            "def is not known in the bodies of plans here; put it into a script",
		"yield 1":                         "yield is not known",
		"import os\nos.system('x')":       "import of os is not known",
		"a()\n    b()":                    "unexpected indent",
		"if a:\n    b()\n  c()":           "unindent does not match",
		"1 = 2":                           "cannot assign",
		"return $x":                       `"$" is not known here`,
		"try:\n  pass":                    "try needs except or finally",
		strings.Repeat("(", 500):          "nested too deeply",
		strings.Repeat("not ", 500) + "1": "nested too deeply",
		strings.Repeat("-", 500) + "1":    "nested too deeply",
	} {
		_, err := body.Parse(source)
		require.ErrorContains(t, err, want, source)
	}
}

func TestMistakesInBodiesAreWhatPythonCallsThem(t *testing.T) {
	for source, want := range map[string]string{
		"return missing":                                 "NameError: name 'missing' is not defined",
		"return args.missing":                            "AttributeError: there is no missing",
		"return args['missing']":                         "KeyError: 'missing'",
		"return 'a' + 1":                                 "TypeError: cannot concatenate 'str' and 'int' objects",
		"\nreturn 1 / 0":                                 "line 2 of the plan's Body: ZeroDivisionError",
		"return [1][5]":                                  "IndexError",
		"return int('x')":                                "ValueError: invalid literal for int() with base 10: 'x'",
		"return '{0} {1}'.format(1)":                     "IndexError: there is no value for the field {1}",
		"raise Exception('it is no good')":               "Exception: it is no good",
		"return args.name()":                             "TypeError: 'str' object is not callable",
		"return deploy":                                  "TypeError: the body gives a function",
		"while True: pass":                               "RuntimeError: the body takes too many steps",
		"return 'aaaaaaaaaa' * 10000000":                 "MemoryError",
		"a = 'aaaaaaaaaa'\nwhile True: a += a":           "MemoryError",
		"a = []\na.append(a)\nreturn a":                  "MemoryError: the value is too large",
		"a = []\na.append(a)\nstr(a)\na == [a]\nmissing": "NameError",
		"a = [1]\nfor i in range(90): a = [a, a]\nreturn str(a) and missing": "NameError",
		"return '%(x)s' % (1, 2)":                        "TypeError",
		"a = [1]\nwhile True: a += a":                    "MemoryError",
		"return range(1000000)":                          "MemoryError",
		"return '{0:99999999}'.format(1)":                "ValueError",
		"return 9223372036854775807 + 1":                 "OverflowError",
		"return 2 ** 100000000000":                       "OverflowError",
		"with args as a:\n  pass":                        "AttributeError: with is for files",
		"f = lambda x: f(x)\nf(1)":                       "RuntimeError: functions call each other too deeply",
		"open('x', 'w').write(1)":                        "TypeError: write() takes a text",
		"return ''.__class__":                            "AttributeError",
		"return '{0.__class__.__mro__}'.format('a')":     "AttributeError",
		"try:\n  return 1 / 0\nexcept KeyError:\n  pass": "ZeroDivisionError",
	} {
		read, err := body.Parse(source)
		require.NoError(t, err, source)
		_, err = read.Run(t.Context(), parameters, world(new([]string)))
		require.ErrorContains(t, err, want, source)
	}
}

func TestTheErrorOfAScriptComesOutAsItIs(t *testing.T) {
	read, err := body.Parse("try:\n  broken()\nexcept KeyError:\n  pass")
	require.NoError(t, err)
	_, err = read.Run(t.Context(), nil, world(new([]string)))
	require.Same(t, errBroken, err)
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"return deploy(args.x).stdout", "if a:\n  b('{0}'.format(c))\nelse: d()", "x = [a for a in {1: 2}.items() if a]", "'%s' % (1,)", "try:\n  a[1:2]\nexcept E as e:\n  raise"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		read, err := body.Parse(source)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // sleeps end at once
		_, _ = read.Run(ctx, parameters, world(new([]string)))
	})
}
