-- Made by the first document: most memories have none, and each index takes a page.
CREATE INDEX IF NOT EXISTS files_by_document ON files (doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS files_by_whole ON files (part_of) WHERE part_of IS NOT NULL;
