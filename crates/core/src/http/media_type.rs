//! Media types by file extension.

const UNKNOWN: &str = "application/octet-stream";

/// The media type for the extension of a file's name or path, case-insensitive. Text is assumed to be UTF-8.
pub fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if extension.len() > 11 {
        return UNKNOWN;
    }
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "log" | "text" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "md" | "markdown" => "text/markdown; charset=utf-8",
        "ics" => "text/calendar; charset=utf-8",
        "vtt" => "text/vtt; charset=utf-8",
        "json" | "map" => "application/json",
        "jsonld" => "application/ld+json",
        "ndjson" => "application/x-ndjson",
        "webmanifest" => "application/manifest+json",
        "xml" => "application/xml",
        "atom" => "application/atom+xml",
        "rss" => "application/rss+xml",
        "xhtml" => "application/xhtml+xml",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "rtf" => "application/rtf",
        "png" => "image/png",
        "apng" => "image/apng",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "bmp" => "image/bmp",
        "ico" => "image/vnd.microsoft.icon",
        "tif" | "tiff" => "image/tiff",
        "heic" => "image/heic",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        "eot" => "application/vnd.ms-fontobject",
        "mp3" => "audio/mpeg",
        "m4a" => "audio/mp4",
        "aac" => "audio/aac",
        "ogg" | "oga" => "audio/ogg",
        "opus" => "audio/opus",
        "flac" => "audio/flac",
        "wav" => "audio/wav",
        "weba" => "audio/webm",
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "ogv" => "video/ogg",
        "mov" => "video/quicktime",
        "avi" => "video/x-msvideo",
        "mpeg" | "mpg" => "video/mpeg",
        "m3u8" => "application/vnd.apple.mpegurl",
        "ts" => "video/mp2t",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "bz2" => "application/x-bzip2",
        "xz" => "application/x-xz",
        "zst" => "application/zstd",
        "tar" => "application/x-tar",
        "7z" => "application/x-7z-compressed",
        "epub" => "application/epub+zip",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "ppt" => "application/vnd.ms-powerpoint",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "odt" => "application/vnd.oasis.opendocument.text",
        "ods" => "application/vnd.oasis.opendocument.spreadsheet",
        _ => UNKNOWN,
    }
}

/// Whether compressing this media type is worth the time: images, videos and archives are compressed already.
pub fn is_compressible(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim_end();
    let essence = essence.to_ascii_lowercase();
    // Events are too small, and heartbeats are made by the connection.
    essence.starts_with("text/") && essence != "text/event-stream"
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence.as_str(),
            "application/json"
                | "application/javascript"
                | "application/xml"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/wasm"
                | "application/rtf"
                | "application/x-tar"
                | "application/vnd.ms-fontobject"
                | "font/ttf"
                | "font/otf"
                | "image/bmp"
                | "image/vnd.microsoft.icon"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_in_any_case_decides() {
        assert_eq!(media_type("a.tar.GZ"), "application/gzip");
        assert_eq!(media_type("INDEX.Html"), "text/html; charset=utf-8");
        for name in [
            "",
            "Makefile",
            "a.",
            "a.unknown-extension-that-is-long",
            "a.b.?",
        ] {
            assert_eq!(media_type(name), UNKNOWN, "{name}");
        }
    }

    #[test]
    fn only_media_types_that_are_not_compressed_already_are_compressible() {
        for kind in [
            "text/html; charset=utf-8",
            "Application/JSON",
            "application/problem+json",
            "image/svg+xml",
        ] {
            assert!(is_compressible(kind), "{kind}");
        }
        for kind in [
            "",
            "image/png",
            "text/event-stream",
            "application/octet-stream",
            "application/zip",
        ] {
            assert!(!is_compressible(kind), "{kind}");
        }
    }
}
