// Package core holds the Go bodies of the classes of io.murano that need no cloud: objects' attributes, exceptions, loggers, reports, resources of
// packages, the collector.
package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// Host is the environment that the bodies need.
type Host interface {
	// Attribute returns the value that SetAttribute stored with the object and class; false without one.
	Attribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	// SetAttribute stores a JSON value with the object and class; nil removes it.
	SetAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error
	// Report writes to the deployment's log; object is nil for the environment as a whole.
	Report(ctx context.Context, object *muranopl.Object, failed bool, text string) error
	// Home is the region of environments that name none.
	Home() string
	// StackIn is the name of the environment's stack in a region, which is an object of io.murano.CloudRegion.
	StackIn(region *muranopl.Object) string
}

// DefaultRegion is the name that OpenStack's installers give the only region of a cloud.
const DefaultRegion = "RegionOne"

// Methods are the bodies, by class. Loggers write to logger.
func Methods(host Host, logger *slog.Logger) map[string]map[string]muranopl.NativeMethod {
	c := core{host, logger}
	return map[string]map[string]muranopl.NativeMethod{
		"io.murano.Object":     {"getAttr": c.getAttr, "setAttr": c.setAttr},
		"io.murano.Exception":  {"toString": exceptionText},
		"io.murano.StackTrace": {"toString": stackText},
		"io.murano.system.GC":  muranopl.CollectorNatives(),
		"io.murano.system.Logger": {
			"trace": c.log(slog.LevelDebug - 4), "debug": c.log(slog.LevelDebug), "info": c.log(slog.LevelInfo), "warning": c.log(slog.LevelWarn),
			"error": c.log(slog.LevelError), "critical": c.log(slog.LevelError + 4), "exception": c.logException,
		},
		"io.murano.CloudRegion":           {"home": c.home, "stackName": c.stackName},
		"io.murano.system.StatusReporter": {"report": c.report(false), "report_error": c.report(true)},
		"io.murano.system.Resources":      {"string": resourceText, "json": resourceJSON, "yaml": resourceYAML, ".init": rememberOwner},
	}
}

type core struct {
	host   Host
	logger *slog.Logger
}

func (c core) home(context.Context, muranopl.Call) (any, error) {
	return c.host.Home(), nil
}

func (c core) stackName(_ context.Context, call muranopl.Call) (any, error) {
	return c.host.StackIn(call.Object), nil
}

// ownerOf returns the name of the class of an attribute: the given one, else the class of the calling code.
func ownerOf(ctx context.Context, call muranopl.Call) (string, error) {
	caller := muranopl.Caller(ctx)
	switch owner := call.Args["owner"].(type) {
	case muranopl.TypeReference:
		return owner.Class.Name, nil
	case string:
		if caller == nil {
			return owner, nil
		}
		class, err := call.Interpreter.Classes().Resolve(ctx, caller.Class, owner)
		if err != nil {
			return "", err
		}
		return class.Name, nil
	}
	if caller != nil {
		return caller.Class.Name, nil
	}
	return call.Object.Class().Name, nil
}

func (c core) getAttr(ctx context.Context, call muranopl.Call) (any, error) {
	owner, err := ownerOf(ctx, call)
	if err != nil {
		return nil, err
	}
	value, found, err := c.host.Attribute(ctx, call.Object, owner, text(call, "name"))
	if err != nil || !found || value == nil {
		return call.Args["default"], err
	}
	return value, nil
}

// maxAttribute is how many bytes the value of an attribute has.
const maxAttribute = 8 << 20

func (c core) setAttr(ctx context.Context, call muranopl.Call) (any, error) {
	owner, err := ownerOf(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := muranopl.Written(call.Args["value"], maxAttribute, "the attribute "+text(call, "name")); err != nil {
		return nil, err
	}
	return nil, c.host.SetAttribute(ctx, call.Object, owner, text(call, "name"), muranopl.SaveReferences(call.Args["value"]))
}

func text(call muranopl.Call, argument string) string {
	value, _ := call.Args[argument].(string)
	return value
}

func exceptionText(_ context.Context, call muranopl.Call) (any, error) {
	if e := call.Object.Exception(); e != nil {
		return e.Traceback(), nil
	}
	name, _ := call.Object.Get("name")
	return yaql.Text(name) + ": " + call.Object.Text("message"), nil
}

func stackText(_ context.Context, call muranopl.Call) (any, error) {
	var frames []muranopl.Frame
	for _, item := range call.Object.List("frames") {
		frame, _ := item.(map[string]any)
		location, _ := frame["location"].(map[string]any)
		f := muranopl.Frame{}
		f.Instruction, _ = frame["instruction"].(string)
		f.Method, _ = frame["methodName"].(string)
		f.Class, _ = frame["typeName"].(string)
		f.Position.File, _ = location["filePath"].(string)
		f.Position.Line, f.Position.Column = number(location["line"]), number(location["column"])
		frames = append(frames, f)
	}
	return muranopl.FormatFrames(frames, text(call, "prefix")), nil
}

func number(value any) int {
	n, _ := value.(int64)
	return int(n)
}

// log writes a message whose fields {0} and {name} are filled. A message that cannot be filled is written as it is: no log line may
// end a deployment.
func (c core) log(level slog.Level) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		c.logger.Log(ctx, level, c.message(ctx, call), "logger", call.Object.Text("name"))
		return nil, nil
	}
}

func (c core) logException(ctx context.Context, call muranopl.Call) (any, error) {
	message := c.message(ctx, call)
	if object, ok := call.Args["__exception"].(*muranopl.Object); ok && object.Exception() != nil {
		message += "\n" + muranopl.FormatFrames(object.Exception().Frames, "")
	}
	c.logger.Log(ctx, slog.LevelError, message, "logger", call.Object.Text("name"))
	return nil, nil
}

func (c core) message(ctx context.Context, call muranopl.Call) string {
	message := text(call, "__message")
	args, _ := call.Args["args"].([]any)
	named, _ := call.Args["kwargs"].(map[string]any)
	filled, err := yaql.Format(message, args, named)
	if err != nil {
		c.logger.WarnContext(ctx, "a log message cannot be filled", "message", message, "error", err)
		return message
	}
	return filled
}

func (c core) report(failed bool) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		object, _ := call.Args["instance"].(*muranopl.Object)
		return nil, c.host.Report(ctx, object, failed, text(call, "msg"))
	}
}

// propertyOwner is the class whose code made an object of io.murano.system.Resources.
const propertyOwner = "owner"

// rememberOwner records the package whose resources the object represents, wherever it is used.
func rememberOwner(ctx context.Context, call muranopl.Call) (any, error) {
	caller := muranopl.Caller(ctx)
	if caller == nil {
		return nil, nil
	}
	return nil, call.Object.Set(propertyOwner, muranopl.TypeReference{Class: caller.Class})
}

// ResourceOf returns a file in the folder Resources of the package whose code made an object of io.murano.system.Resources; of the package
// whose code calls when there is no object.
func ResourceOf(ctx context.Context, resources *muranopl.Object, name string) ([]byte, error) {
	var class *muranopl.Class
	if resources != nil {
		if owner, ok := resources.Get(propertyOwner); ok {
			reference, _ := owner.(muranopl.TypeReference)
			class = reference.Class
		}
	}
	if caller := muranopl.Caller(ctx); class == nil && caller != nil {
		class = caller.Class
	}
	return resourceIn(class, name)
}

// resource returns a file in the folder Resources of the package of the requested class, or else of the calling one.
func resource(ctx context.Context, call muranopl.Call) ([]byte, error) {
	if owner, ok := call.Args["owner"].(muranopl.TypeReference); ok {
		return resourceIn(owner.Class, text(call, "name"))
	}
	return ResourceOf(ctx, nil, text(call, "name"))
}

func resourceIn(class *muranopl.Class, name string) ([]byte, error) {
	if class == nil {
		return nil, fault.New(fault.Invalid, "resources are read from the code of a class: say of which by owner")
	}
	if files, ok := class.Package.(interface{ File(string) ([]byte, error) }); ok {
		if content, err := files.File("Resources/" + name); !errors.Is(err, fs.ErrNotExist) {
			return content, err
		}
	}
	return nil, missing{fmt.Errorf("package %s has no file Resources/%s", class.Package.FullName(), name)}
}

// missing is that a file is not there, as Python calls it.
type missing struct{ error }

func (missing) ExceptionNames() []string { return []string{"FileNotFoundError"} }

func resourceText(ctx context.Context, call muranopl.Call) (any, error) {
	content, err := resource(ctx, call)
	if err != nil {
		return nil, err
	}
	if binary, _ := call.Args["binary"].(bool); binary {
		return string(content), nil
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(content)), nil
}

func resourceJSON(ctx context.Context, call muranopl.Call) (any, error) {
	content, err := resource(ctx, call)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(content)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fault.New(fault.Invalid, "Resources/%s is no JSON: %w", text(call, "name"), err)
	}
	return yaql.FromJSON(value), nil
}

func resourceYAML(ctx context.Context, call muranopl.Call) (any, error) {
	content, err := resource(ctx, call)
	if err != nil {
		return nil, err
	}
	value, err := muranopl.ReadYAML("Resources/"+text(call, "name"), content)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return value, nil
}
