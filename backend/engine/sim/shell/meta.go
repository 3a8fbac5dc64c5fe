package shell

import (
	"strings"

	"mvdan.cc/sh/v3/interp"
)

func timeout(c *command) int {
	if len(c.args) < 2 {
		return c.usage("DURATION COMMAND [ARG]…")
	}
	d, err := length(c.args[0])
	if err != nil {
		c.fail("%v", err)
		return 125
	}
	inner := *c
	ctx, cancel := contextTimeout(c.ctx, d)
	defer cancel()
	inner.ctx = ctx
	code := inner.nested(quoted(c.args[1:]), c.args[1], nil)
	if ctx.Err() != nil && c.ctx.Err() == nil {
		return 124
	}
	return code
}

func shellUtility(c *command) int {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && len(args[0]) > 1 {
		letters := args[0][1:]
		args = args[1:]
		if strings.HasSuffix(letters, "c") {
			if len(args) == 0 {
				return c.fail("-c: option requires an argument")
			}
			name, rest := c.name, args[1:]
			if len(rest) > 0 {
				name, rest = rest[0], rest[1:]
			}
			return c.nested(args[0], name, rest)
		}
	}
	if len(args) == 0 {
		script, err := slurp(c.stdin())
		if err != nil {
			return c.fail("%s", errText(err))
		}
		return c.nested(string(script), c.name, nil)
	}
	data, err := c.world.FS.ReadFile(c.path(args[0]))
	if err != nil {
		c.fail("%s: %s", args[0], errText(err))
		return 127
	}
	return c.nested(string(data), args[0], args[1:])
}

func xargs(c *command) int {
	f, operands, err := c.parse("n:I:r", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 {
		operands = []string{"echo"}
	}
	input, err := slurp(c.stdin())
	if err != nil {
		return c.fail("%s", errText(err))
	}
	size, err := f.number('n', 1<<30)
	if err != nil || size < 1 {
		return c.fail("invalid number for -n")
	}
	words := strings.Fields(string(input))
	if f.has("I") {
		size = 1
		words = strings.Split(strings.TrimSuffix(string(input), "\n"), "\n")
	}
	if len(words) == 0 && f.has("r") {
		return 0
	}
	code := 0
	for first := true; first || len(words) > 0; first = false {
		n := min(size, len(words))
		line := append(append([]string{}, operands...), words[:n]...)
		if f.has("I") && n == 1 {
			line = append([]string{}, operands...)
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], f['I'], words[0])
			}
		}
		words = words[n:]
		inner := *c
		inner.in = nil
		if inner.nested(quoted(line), line[0], nil) != 0 {
			code = 123
		}
		if c.ctx.Err() != nil {
			return 130
		}
	}
	return code
}

// typeOf answers type, which and command -v.
func typeOf(c *command) int {
	verbose := c.name == "type"
	code := 0
	for _, name := range c.args {
		if strings.HasPrefix(name, "-") {
			verbose = verbose && name != "-p" && name != "-P"
			continue
		}
		functions := c.shell.functions.Load()
		_, program := c.shell.utilities[name]
		switch {
		case functions != nil && (*functions)[name] && verbose:
			c.printf("%s is a function\n", name)
		case program && verbose:
			c.printf("%s is /usr/bin/%s\n", name, name)
		case program:
			c.printf("/usr/bin/%s\n", name)
		case interp.IsBuiltin(name) && verbose:
			c.printf("%s is a shell builtin\n", name)
		case interp.IsBuiltin(name) || functions != nil && (*functions)[name]:
			c.printf("%s\n", name)
		default:
			code = 1
			if verbose {
				c.fail("%s: not found", name)
			}
		}
	}
	return code
}
