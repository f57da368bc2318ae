//! Connect: who is asked for an object, and with which credentials.
//!
//! The environment says nearly everything, in the variables of the services' own programs: `object_store` reads them, and so it does
//! web identities and what the metadata of a machine in the cloud knows. It does not read `~/.aws`: [`super::profile`] does.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::ClientConfigKey;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::{Location, Service, profile, words};
use crate::error::ImportError;

/// A request as a whole may take any time: silence is what ends it, and `--timeout`.
const REQUEST: &str = "30days";

/// A server that is busy is asked again, for some seconds. Every machine outside of a cloud waits that long to learn that it has no
/// metadata.
fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(5), base: 2.0 };
    RetryConfig { backoff, max_retries: 4, retry_timeout: Duration::from_secs(60) }
}

fn agent() -> String {
    format!("tq/{}", crate::VERSION)
}

/// Who answers for a location. Credentials are looked for now, so that their absence is told from what the service refuses.
pub(super) async fn connect(location: &Location) -> Result<Arc<dyn ObjectStore>, ImportError> {
    match location.service {
        Service::S3 => s3(location).await,
        Service::Google => google(location).await,
        Service::Azure => azure(location).await,
        Service::Web => web(location),
    }
}

async fn s3(location: &Location) -> Result<Arc<dyn ObjectStore>, ImportError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(&location.bucket).with_retry(retries());
    for (key, value) in [(ClientConfigKey::Timeout, REQUEST), (ClientConfigKey::UserAgent, agent().as_str())] {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let given = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
    let has_keys = given(AmazonS3ConfigKey::AccessKeyId).is_some();
    let has_token = given(AmazonS3ConfigKey::WebIdentityTokenFile).is_some();
    let is_unsigned = given(AmazonS3ConfigKey::SkipSignature).is_some_and(|value| value != "false");
    let has_region = given(AmazonS3ConfigKey::Region).is_some() || given(AmazonS3ConfigKey::DefaultRegion).is_some();
    if !has_region && let Some(region) = profile::region() {
        builder = builder.with_region(region);
    }
    if !has_keys
        && !has_token
        && !is_unsigned
        && let Some(keys) = profile::keys(&location.shown)?
    {
        builder = builder.with_access_key_id(keys.id).with_secret_access_key(keys.secret);
        if let Some(token) = keys.token {
            builder = builder.with_token(token);
        }
    }
    let store = builder.build().map_err(|error| words::failed(location, &error))?;
    if !is_unsigned {
        store.credentials().get_credential().await.map_err(|error| words::no_credentials(location, &error))?;
    }
    Ok(Arc::new(store))
}

async fn google(location: &Location) -> Result<Arc<dyn ObjectStore>, ImportError> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&location.bucket).with_retry(retries());
    for (key, value) in [(ClientConfigKey::Timeout, REQUEST), (ClientConfigKey::UserAgent, agent().as_str())] {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let skip = builder.get_config_value(&GoogleConfigKey::SkipSignature);
    let store = builder.build().map_err(|error| words::no_credentials(location, &error))?;
    if skip.is_none_or(|value| value == "false") {
        store.credentials().get_credential().await.map_err(|error| words::no_credentials(location, &error))?;
    }
    Ok(Arc::new(store))
}

async fn azure(location: &Location) -> Result<Arc<dyn ObjectStore>, ImportError> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(&location.bucket).with_retry(retries());
    for (key, value) in [(ClientConfigKey::Timeout, REQUEST), (ClientConfigKey::UserAgent, agent().as_str())] {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    let skip = builder.get_config_value(&AzureConfigKey::SkipSignature);
    let store = builder.build().map_err(|error| words::no_credentials(location, &error))?;
    if skip.is_none_or(|value| value == "false") {
        store.credentials().get_credential().await.map_err(|error| words::no_credentials(location, &error))?;
    }
    Ok(Arc::new(store))
}

fn web(location: &Location) -> Result<Arc<dyn ObjectStore>, ImportError> {
    // Who types `http://` wants it; a page of `https://` that leads to `http://` is refused.
    let options = ClientOptions::new()
        .with_config(ClientConfigKey::Timeout, REQUEST)
        .with_config(ClientConfigKey::UserAgent, agent())
        .with_allow_http(location.bucket.starts_with("http://"));
    let builder = HttpBuilder::new().with_url(&location.bucket).with_client_options(options).with_retry(retries());
    Ok(Arc::new(builder.build().map_err(|error| words::failed(location, &error))?))
}
