-- +goose Up
-- As in the orchestrator's 0053_kept_quotas.sql.
INSERT INTO package_quotas (project_id, resource, most)
SELECT owner_id, 'kept/packages', COUNT(*) * 3 / 2 FROM packages WHERE NOT embedded GROUP BY owner_id HAVING COUNT(*) * 3 / 2 > 500;
INSERT INTO package_quotas (project_id, resource, most)
SELECT owner_id, 'kept/package_bytes', CAST(SUM(bytes) AS BIGINT) * 3 / 2 FROM packages WHERE NOT embedded GROUP BY owner_id HAVING SUM(bytes) * 3 / 2 > 1073741824;

-- +goose Down
DELETE FROM package_quotas WHERE resource LIKE 'kept/%';
