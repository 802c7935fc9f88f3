package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/orchestrator/store"
)

// An attribute holds a value that MuranoPL code stores with an object. An attribute with secrets, such as the password of a new database, is stored as a
// secret of the environment, sealed for this object and name alone. The attribute's row then has keptSealed in its place.

const keptSealed = "kept as a sealed secret"

func isKeptSealed(value any) bool {
	fields, _ := value.(map[string]any)
	return len(fields) == 1 && fields[keptSealed] == true
}

// holdsSecrets reports whether the value of an attribute of this name is a secret, or contains one.
func holdsSecrets(name string, value any) bool {
	found := false
	sensitive.Texts(name, value, func(text string) string { found = true; return text })
	return found
}

// attributeSecret is the name of the secret in which an attribute of an object is stored.
func attributeSecret(objectID, class, name string) string {
	return store.AttributeSecrets(objectID) + url.PathEscape(class) + "/" + url.PathEscape(name)
}

// openAttribute returns the value of a stored attribute: the row's own, or its secret's.
func (e *Engine) openAttribute(ctx context.Context, environmentID, objectID, class, name string, stored any) (any, error) {
	if !isKeptSealed(stored) {
		return stored, nil
	}
	text, found, err := e.Secret(ctx, environmentID, attributeSecret(objectID, class, name))
	if err != nil || !found { // code may keep a map of this form
		return stored, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read the attribute %s of %s: %w", name, objectID, err)
	}
	return yaql.FromJSON(value), nil
}

// sealAttribute stores the value of an attribute as a secret, and only then marks the attribute as sealed: a task that ends in between leaves the attribute
// as it was.
func (r *Runtime) sealAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the attribute %s of %s: %w", name, object.ID(), err)
	}
	secret := attributeSecret(object.ID(), class, name)
	if err := r.held.SetSecret(ctx, secret, r.engine.Sealer.Seal(store.SecretOwner(r.environment.ID, secret), text)); err != nil {
		return err
	}
	return r.held.SetAttribute(ctx, object.ID(), class, codePrefix+name, map[string]any{keptSealed: true})
}
