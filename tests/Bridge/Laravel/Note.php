<?php

declare(strict_types=1);

namespace Weft\Tests\Bridge\Laravel;

use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\Relations\BelongsTo;
use Illuminate\Database\Eloquent\Relations\HasMany;
use Illuminate\Database\Eloquent\SoftDeletes;

/**
 * @property int $id
 * @property string $text
 */
final class Note extends Model
{
    use SoftDeletes;

    /** @var list<string> */
    protected $fillable = ['text', 'meta'];

    /** @var array<string, string> */
    protected $casts = ['meta' => 'array'];

    /** @return HasMany */
    public function children(): HasMany
    {
        return $this->hasMany(self::class, 'parent_id');
    }

    /** @return BelongsTo */
    public function parent(): BelongsTo
    {
        return $this->belongsTo(self::class, 'parent_id');
    }
}
