-- +goose Up
-- Until now nothing was limited by default. A project that has more than the first defaults keeps half as many again as it has, so that all of it can be
-- changed, removed and made anew.
INSERT INTO quotas (project_id, resource, most)
SELECT project_id, 'kept/environments', COUNT(*) * 3 / 2 FROM environments GROUP BY project_id HAVING COUNT(*) * 3 / 2 > 1000;
INSERT INTO quotas (project_id, resource, most)
SELECT environments.project_id, 'kept/sessions', COUNT(*) * 3 / 2 FROM sessions JOIN environments ON environments.id = sessions.environment_id
WHERE sessions.state = 'opened' GROUP BY environments.project_id HAVING COUNT(*) * 3 / 2 > 2000;
INSERT INTO quotas (project_id, resource, most)
SELECT project_id, 'kept/templates', COUNT(*) * 3 / 2 FROM templates GROUP BY project_id HAVING COUNT(*) * 3 / 2 > 1000;

-- +goose Down
DELETE FROM quotas WHERE resource LIKE 'kept/%';
