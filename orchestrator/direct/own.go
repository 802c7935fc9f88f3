package direct

import (
	"context"
	"crypto/rand"
	"math/big"

	"github.com/burano/burano/catalog/hot"
)

// This file has the types without a physical resource. Their data are in the resource's row.

const classLettersDigits = "lettersdigits"

var characters = map[string]string{
	"lowercase": "abcdefghijklmnopqrstuvwxyz", "uppercase": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "digits": "0123456789", "hexdigits": "0123456789ABCDEF",
	"octdigits": "01234567", "letters": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
	classLettersDigits: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
}

func nothing(context.Context, *job) error { return nil }

var randomString = kind{
	properties: map[string]property{"length": {form: number, fallback: 32.0}, "character_classes": {form: list}, "character_sequences": {form: list}, "salt": {form: words}},
	create: func(ctx context.Context, j *job) error {
		if j.resource.PhysicalID != "" {
			return nil
		}
		value, err := j.randomText()
		if err != nil {
			return err
		}
		if err := j.note(ctx, "value", value); err != nil {
			return err
		}
		return j.known(ctx, j.resource.ID)
	},
	remove: nothing,
	attributes: func(_ context.Context, j *job) (map[string]any, error) {
		return map[string]any{"value": j.resource.Data["value"]}, nil
	},
	reference: func(j *job) any { return j.resource.Data["value"] },
	adopt: func(one *resource, attributes map[string]any) {
		one.Data = map[string]string{"value": hot.Text(attributes["value"])}
	},
}

// randomText has of each class and each sequence as much as is demanded at least, in a random order.
func (j *job) randomText() (string, error) {
	length, _ := j.properties["length"].(float64)
	if length < 1 || length > 512 {
		return "", wrong("the length is between 1 and 512, and not %s", j.text("length"))
	}
	wanted, sequences := hot.List(j.properties["character_classes"]), hot.List(j.properties["character_sequences"])
	if len(wanted)+len(sequences) == 0 {
		wanted = []any{map[string]any{"class": classLettersDigits, "min": 1.0}}
	}
	var parts, choices []string
	demand := func(choice []string, entry map[string]any) error {
		least, given := entry["min"].(float64)
		if !given {
			least = 1
		}
		for range int(least) {
			part, err := anyOf(choice)
			if err != nil {
				return err
			}
			parts = append(parts, part)
		}
		choices = append(choices, choice...)
		return nil
	}
	for _, one := range wanted {
		entry, _ := one.(map[string]any)
		class := hot.Text(entry["class"])
		if class == "" {
			class = classLettersDigits
		}
		letters, known := characters[class]
		if !known {
			return "", wrong("the character class %s is not known", class)
		}
		var choice []string
		for _, letter := range letters {
			choice = append(choice, string(letter))
		}
		if err := demand(choice, entry); err != nil {
			return "", err
		}
	}
	for _, one := range sequences {
		entry, _ := one.(map[string]any)
		if hot.Text(entry["sequence"]) == "" {
			return "", wrong("a sequence of characters is empty")
		}
		if err := demand([]string{hot.Text(entry["sequence"])}, entry); err != nil {
			return "", err
		}
	}
	size := func() (n int) {
		for _, part := range parts {
			n += len(part)
		}
		return n
	}
	if size() > int(length) {
		return "", wrong("the length %s is less than what the classes demand", j.text("length"))
	}
	for size() < int(length) {
		part, err := anyOf(choices)
		if err != nil {
			return "", err
		}
		parts = append(parts, part[:min(len(part), int(length)-size())])
	}
	made := ""
	for len(parts) > 0 {
		n, err := below(len(parts))
		if err != nil {
			return "", err
		}
		made += parts[n]
		parts = append(parts[:n], parts[n+1:]...)
	}
	return made, nil
}

func anyOf(choice []string) (string, error) {
	n, err := below(len(choice))
	if err != nil {
		return "", err
	}
	return choice[n], nil
}

func below(limit int) (int, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(limit)))
	if err != nil {
		return 0, err
	}
	return int(n.Int64()), nil
}

func itself(ctx context.Context, j *job) error { return j.known(ctx, j.resource.ID) }

var value = kind{
	properties: map[string]property{"value": {form: anything, required: true}, "type": {form: words}},
	create:     itself,
	update:     func(context.Context, *job, []string) error { return nil },
	remove:     nothing,
	attributes: func(_ context.Context, j *job) (map[string]any, error) {
		return map[string]any{"value": j.properties["value"]}, nil
	},
}

var none = kind{
	create: itself,
	remove: nothing,
	attributes: func(context.Context, *job) (map[string]any, error) {
		return map[string]any{}, nil
	},
}
