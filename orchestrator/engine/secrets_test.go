package engine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/secret"
)

// lines is a log that may be read while it is written.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// Users without access to the passwords of the model read an application's reports, exceptions and logs.
func TestAnApplicationThatTellsItsSecretsTellsNobody(t *testing.T) {
	var log lines
	h := uploadedHouse(t)
	h.stop()
	h.logger = slog.New(slog.NewTextHandler(&log, nil))
	h.start()
	const password, fresh = "corre'ct \"horse\"", "battery staple"
	id := h.create("one")
	h.deploy(id, map[string]any{"?": map[string]any{"id": "t", "type": "io.burano.test.Teller"}, "password": password, "pin": "1234567",
		"access": map[string]any{"dbPassword": "of the database"}, "made": "made "})
	deployment := h.ended(id)
	reports := h.reports(id, deployment)
	require.Equal(t, "success", deployment.State, texts(reports))
	require.Equal(t, []string{"Action deploy is scheduled", "The password is " + secret.Mark + ", really", "As a map {'asked': '" + secret.Mark + "'}",
		"As a list ('" + secret.Mark + "',)", "The PIN is 1234567", "Below " + secret.Mark, "Made " + secret.Mark, "Kept " + secret.Mark, "Deployment finished"},
		texts(reports))
	require.Contains(t, log.String(), "logged "+secret.Mark)

	// Followers see the stored text.
	var followed []string
	_, err := h.service.Deployments().Follow(t.Context(), demo, deployment.ID, orchestrator.Follower{Report: func(report orchestrator.Report) error {
		followed = append(followed, report.Text)
		return nil
	}, State: func(string) error { return nil }})
	require.NoError(t, err)
	require.Equal(t, texts(reports), followed)

	task, err := h.service.Actions().Call(t.Context(), demo, id, "t_fail", map[string]any{"newPassword": fresh})
	require.NoError(t, err)
	deployment = h.ended(id)
	result, err := h.service.Actions().Result(t.Context(), demo, id, task)
	require.NoError(t, err)
	require.Equal(t, true, result["isException"])
	require.Contains(t, fmt.Sprint(result), "neither "+secret.Mark+" nor "+secret.Mark+" is taken")
	failed := h.reports(id, deployment)
	require.True(t, slices.ContainsFunc(failed, func(r orchestrator.Report) bool { return r.Level == "error" }), texts(failed))

	// An action's result is for its caller, and masked where deployments are listed.
	task, err = h.service.Actions().Call(t.Context(), demo, id, "t_reveal", nil)
	require.NoError(t, err)
	listed := h.ended(id)
	result, err = h.service.Actions().Result(t.Context(), demo, id, task)
	require.NoError(t, err)
	require.Equal(t, "it is "+password, result["result"].(map[string]any)["message"])
	require.Equal(t, "it is "+secret.Mark, listed.Result["result"].(map[string]any)["message"])

	// An action returns a class's attribute to its caller, and to no other user.
	task, err = h.service.Actions().Call(t.Context(), demo, id, "t_recall", nil)
	require.NoError(t, err)
	listed = h.ended(id)
	result, err = h.service.Actions().Result(t.Context(), demo, id, task)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"isException": false, "result": "kept is kept as an attribute"}, result)
	require.Equal(t, map[string]any{"isException": false, "result": "kept is " + secret.Mark}, listed.Result)
	for _, report := range append(reports, failed...) {
		details := ""
		if report.Details != nil {
			details = *report.Details
		}
		for _, value := range []string{"horse", fresh, "of the database", "made by code", "kept as an attribute"} {
			require.NotContains(t, report.Text+details, value)
			require.NotContains(t, log.String(), value)
		}
	}
}

// The name of a step may describe its work, such as its command.
func TestTheNameOfAStepTellsNoSecret(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	one := application("a1", "alpha", nil)
	one["?"].(map[string]any)["_kept"] = map[string]any{"password": "battery staple"}
	h.deploy(id, one)
	h.ended(id)
	_, err := h.service.Actions().Call(t.Context(), demo, id, "a1_shout", map[string]any{"suffix": " battery staple"})
	require.NoError(t, err)
	steps, err := h.service.Deployments().Steps(t.Context(), demo, h.ended(id).ID)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	require.Equal(t, "shout hello "+secret.Mark, steps[0].Name)
}

// TestValuesOfHiddenParametersAreInNoReport: another application reports a Heat template's hidden value under a harmless name.
func TestValuesOfHiddenParametersAreInNoReport(t *testing.T) {
	h := uploadedHouse(t)
	h.stop()
	hiding, err := catalog.ReadFiles(map[string][]byte{"manifest.yaml": []byte("Format: Heat.HOT/1.0\nType: Application\nFullName: org.Hiding\nName: x\nDescription: x\n"),
		"template.yaml": []byte("heat_template_version: 2016-10-14\nparameters: {phrase: {type: string, hidden: true}}\nresources: {r: {type: OS::Heat::RandomString}}\n")})
	require.NoError(t, err)
	h.packages = append(h.packages, hiding)
	h.start()
	id := h.create("one")
	h.deploy(id, map[string]any{"?": map[string]any{"id": "t", "type": "io.burano.test.Teller"}, "password": "correct horse", "pin": "battery staple", "access": map[string]any{}, "made": ""},
		map[string]any{"?": map[string]any{"id": "h", "type": "org.Hiding"}, "name": "x", "templateParameters": map[string]any{"phrase": "battery staple"}})
	reports := h.reports(id, h.ended(id))
	require.Contains(t, texts(reports), "The PIN is "+secret.Mark)
	require.NotContains(t, fmt.Sprint(texts(reports)), "staple")
}

// This holds also for a secret that a former version has stored in the clear. It goes with its object.
func TestASecretThatAClassKeepsInAnAttributeIsASealedSecretOfTheEnvironment(t *testing.T) {
	h := uploadedHouse(t)
	id := h.create("one")
	const class, kept = "io.burano.test.Teller", "attribute/t/io.burano.test.Teller/secretOfTeller"
	recalled := func() any {
		t.Helper()
		task, err := h.service.Actions().Call(t.Context(), demo, id, "t_recall", nil)
		require.NoError(t, err)
		h.ended(id)
		result, err := h.service.Actions().Result(t.Context(), demo, id, task)
		require.NoError(t, err)
		return result["result"]
	}
	isSealed := func(want string) {
		t.Helper()
		value, found, err := h.engine.Secret(t.Context(), id, kept)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, want, string(value))
		attribute, found, err := h.store.Attributes().Get(t.Context(), id, "t", class, engine.CodeAttribute("secretOfTeller"))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, map[string]any{"kept as a sealed secret": true}, attribute)
	}
	h.deploy(id, map[string]any{"?": map[string]any{"id": "t", "type": class}, "password": "x", "pin": "1", "access": map[string]any{}, "made": ""})
	h.ended(id)
	isSealed(`"kept as an attribute"`)
	require.Equal(t, "kept is kept as an attribute", recalled())

	require.NoError(t, h.db.Exec("DELETE FROM secrets WHERE name = ?", kept).Error)
	require.NoError(t, h.db.Exec("UPDATE attributes SET value = ? WHERE object_id = 't'", `"of a former version"`).Error)
	require.Equal(t, "kept is of a former version", recalled())
	isSealed(`"of a former version"`)
	require.Equal(t, "kept is of a former version", recalled())

	h.deploy(id)
	h.ended(id)
	require.Zero(t, h.count("attributes"))
	_, found, err := h.engine.Secret(t.Context(), id, kept)
	require.NoError(t, err)
	require.False(t, found)
}
